import type { FileEntry } from "@berth/protocol";
import type { SandboxFiles } from "@berth/sandbox/port";

/** A larger file is streamed by itself. */
const smallBytes = 64 * 1024;
/** Maximum of one command's files in memory. */
const groupBytes = 2 * 1024 * 1024;
const groupFiles = 500;

export interface FileGroup {
  readonly entries: readonly FileEntry[];
  /** Small files that still exist and have not grown since they were listed. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/** Yields the entries in order, small ones with their contents: a request per file takes longer than reading them all. */
export async function* withSmallContents(
  files: SandboxFiles,
  entries: readonly FileEntry[],
  signal: AbortSignal,
): AsyncGenerator<FileGroup, void, void> {
  for (const group of groupsOf(entries)) {
    const small = group.filter(({ size }) => size <= smallBytes).map(({ path }) => path);
    // On failure every file is read by itself, so that errors are reported per file.
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
