import type { FileToWrite } from "@berth/init";
import type { FileEntry, FileRefusal } from "@berth/protocol";
import type { CallOptions } from "./port.ts";

export type { FileToWrite } from "@berth/init";

/** Many files in one stream. For each a request of its own would take longer than what it asks for. */
export interface ManyFiles {
  /** Entries with their contents, by path. One that cannot be read is reported; the others are read. */
  readMany(paths: readonly string[], options?: ReadManyOptions): Promise<ManyRead>;
  /** Each whole or not at all, as `write` does. One that is refused is reported; the others are written. */
  writeMany(files: readonly FileToWrite[], options?: CallOptions): Promise<ManyWritten>;
  /**
   * Unpacks a tar archive, plain or in gzip, inside the sandbox. Throws `bad-archive`, and writes nothing, if any of its entries is
   * not a file, directory or link that stays in the workspace. Ends at the first entry that is refused.
   */
  unpack(archive: Uint8Array, options?: UnpackOptions): Promise<Unpacked>;
}

export interface ReadManyOptions extends CallOptions {
  /** Include what is in a directory. */
  readonly recursive?: boolean;
  /** Follow a symlink that is named itself. */
  readonly followLinks?: boolean;
  /** Of content in all; a file beyond it is reported as `too-large`. Default 64 MiB. */
  readonly maxBytes?: number;
  readonly maxItems?: number;
}

export interface ManyRead {
  readonly entries: readonly ReadEntry[];
  readonly refused: readonly RefusedFile[];
  /** There was more than `maxItems` or `maxBytes`. */
  readonly truncated: boolean;
}

export interface ReadEntry extends FileEntry {
  /** Of a regular file. */
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
  /** Where its names begin; default the workspace. */
  readonly path?: string;
}

export interface ArchiveSize {
  /** A name that comes twice counts once. */
  readonly entries: number;
  readonly bytes: number;
}

export interface Unpacked extends ManyWritten {
  /** In the archive. `count` of them were made. */
  readonly entries: number;
}

/** The remaining quota of a workspace. */
export interface Room {
  readonly budgetBytes: number;
  readonly budgetEntries: number;
}
