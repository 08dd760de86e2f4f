import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { type FileEntry, maxInlineBytes } from "@berth/protocol";
import { readTar } from "@berth/tar";
import { Complaint } from "../complaint.ts";
import { pipelined } from "../pipelined.ts";
import type { LeftOut } from "./local-source.ts";
import { type LocalTarget, leadsOut } from "./local-target.ts";
import { readInParts } from "./read-parts.ts";
import type { SendJob } from "./write-parts.ts";

/** An archive must fit one result with its file names, its padding, and files that grow meanwhile. */
const archiveBytes = maxInlineBytes - 128 * 1024;
const archiveEntries = 200;
/** Archive overhead per entry: its header, and pax records for a long name. */
const entryBytes = 2_048;
const smallBytes = 256 * 1024;
const archivesAtOnce = 3;

export interface DownloadOptions {
  readonly send: SendJob;
  readonly target: LocalTarget;
  /** Maps a workspace path to a path beneath the target. */
  readonly nameOf: (path: string) => string;
  readonly onBytes: (bytes: number) => void;
}

/** Downloads entries into the target. Returns those it had to leave out. */
export async function download(entries: readonly FileEntry[], options: DownloadOptions): Promise<LeftOut[]> {
  const { send, target, nameOf, onBytes } = options;
  const leftOut: LeftOut[] = [];
  for (const { path, type, mode } of entries)
    if (type === "directory") await target.directory(nameOf(path), mode);
  const files = entries.filter(({ type }) => type === "file");
  // A single named path may be a link to a file, which an archive would hold as a link.
  const inArchive = ({ size }: FileEntry) => entries.length > 1 && size <= smallBytes;
  const missing = new Map(files.filter(inArchive).map((entry) => [entry.path, entry]));
  await pipelined(archivesAtOnce, archives([...missing.values()]), async (some) => {
    const paths = some.map(({ path }) => path);
    const { value } = await send({ kind: "archive", direction: "out", paths });
    const archive = Readable.from([Buffer.from(value.content ?? "", "base64")]);
    for await (const { path, type, mode, size, content } of readTar(archive, bad)) {
      // The sandbox chose the archive's names: accept only those we asked for.
      if (type !== "file" || !missing.delete(path)) continue;
      await target.file(nameOf(path), mode, [await buffer(content)]);
      onBytes(size);
    }
  });
  for (const path of missing.keys()) leftOut.push({ path, reason: "it vanished meanwhile" });
  for (const entry of files)
    if (!inArchive(entry))
      await target.file(nameOf(entry.path), entry.mode, counted(readInParts(send, entry.path), onBytes));
  for (const { path, type, target: to = "" } of entries) {
    if (type !== "symlink") continue;
    if (leadsOut(nameOf(path), to))
      leftOut.push({ path, reason: `a link that leads out of what is copied, to ${to}` });
    else await target.link(nameOf(path), to);
  }
  return leftOut;
}

function* archives(entries: readonly FileEntry[]): Generator<FileEntry[]> {
  let some: FileEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const needed = entry.size + entryBytes + entry.path.length;
    if (some.length > 0 && (bytes + needed > archiveBytes || some.length >= archiveEntries)) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(entry);
    bytes += needed;
  }
  if (some.length > 0) yield some;
}

async function* counted(
  content: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const bytes of content) {
    onBytes(bytes.length);
    yield bytes;
  }
}

function bad(problem: string): Complaint {
  return new Complaint(`an archive from the sandbox cannot be read: ${problem}`);
}
