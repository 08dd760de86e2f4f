import type { FileToWrite } from "@berth/init";
import type { FileEntry, FileRefusal } from "@berth/protocol";
import type { CallOptions } from "./port.ts";

export type { FileToWrite } from "@berth/init";

/** Reads or writes many files in one stream: a request per file would take longer than the files themselves. */
export interface ManyFiles {
  /** Yields entries with their contents, by path. Reports entries that cannot be read, and reads the others. */
  readMany(paths: readonly string[], options?: ReadManyOptions): Promise<ManyRead>;
  /** Writes each file whole or not at all, as `write` does. Reports refused files, and writes the others. */
  writeMany(files: readonly FileToWrite[], options?: CallOptions): Promise<ManyWritten>;
  /**
   * Unpacks a tar archive, plain or in gzip, inside the sandbox. Throws `bad-archive`, and writes nothing, if any of its entries is
   * not a file, directory or link that stays in the workspace. Ends at the first entry that is refused.
   */
  unpack(archive: Uint8Array, options?: UnpackOptions): Promise<Unpacked>;
}

export interface ReadManyOptions extends CallOptions {
  /** Include a directory's content. */
  readonly recursive?: boolean;
  /** Follow a symlink that is named itself. */
  readonly followLinks?: boolean;
  /** Maximum of content in all; reports a file beyond it as `too-large`. Default 64 MiB. */
  readonly maxBytes?: number;
  readonly maxItems?: number;
}

export interface ManyRead {
  readonly entries: readonly ReadEntry[];
  readonly refused: readonly RefusedFile[];
  /** There were more than `maxItems` or `maxBytes`. */
  readonly truncated: boolean;
}

export interface ReadEntry extends FileEntry {
  /** Content of a regular file. */
  readonly bytes?: Uint8Array;
}

export interface RefusedFile {
  readonly path: string;
  readonly refusal: FileRefusal;
}

export interface ManyWritten {
  readonly count: number;
  readonly bytes: number;
  readonly refused: readonly RefusedFile[];
}

export interface UnpackOptions extends CallOptions {
  /** Base of its names; default the workspace. */
  readonly path?: string;
}

export interface ArchiveSize {
  /** A name that appears twice counts once. */
  readonly entries: number;
  readonly bytes: number;
}

export interface Unpacked extends ManyWritten {
  /** Entries in the archive. `count` of them were written. */
  readonly entries: number;
}

/** The remaining quota of a workspace. */
export interface Room {
  readonly budgetBytes: number;
  readonly budgetEntries: number;
}

/** What an operation added to the workspace. */
export interface Growth {
  /** New entries, with missing directories on the way to them. */
  readonly made: number;
  /** Of these. */
  readonly madeDirectories: number;
}
