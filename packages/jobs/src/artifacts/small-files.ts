import type { FileEntry } from "@berth/protocol";
import type { SandboxFiles } from "@berth/sandbox/port";

/** A larger file passes through in pieces, by itself. */
const smallBytes = 64 * 1024;
/** What is held in memory of one command's files, at most. */
const groupBytes = 2 * 1024 * 1024;
const groupFiles = 500;

export interface FileGroup {
  readonly entries: readonly FileEntry[];
  /** Of those that were small, still there, and no larger than they were listed. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/** The entries in their order, small ones with their contents: a request for each would take longer than reading them all. */
export async function* withSmallContents(
  files: SandboxFiles,
  entries: readonly FileEntry[],
  signal: AbortSignal,
): AsyncGenerator<FileGroup, void, void> {
  for (const group of groupsOf(entries)) {
    const small = group.filter(({ size }) => size <= smallBytes).map(({ path }) => path);
    // A failure is reported per file: each is then read by itself.
    const read =
      small.length < 2
        ? undefined
        : await files.readMany(small, { maxBytes: groupBytes, signal }).catch(() => undefined);
    const contents = new Map<string, Uint8Array>();
    for (const { path, bytes } of read?.entries ?? []) if (bytes) contents.set(path, bytes);
    yield { entries: group, contents };
  }
}

function* groupsOf(entries: readonly FileEntry[]): Generator<FileEntry[]> {
  let group: FileEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const held = entry.size <= smallBytes ? entry.size : 0;
    if (group.length === groupFiles || bytes + held > groupBytes) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(entry);
    bytes += held;
  }
  if (group.length > 0) yield group;
}
