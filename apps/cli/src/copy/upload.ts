import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { packTar } from "@berth/tar";
import type { JobOrder } from "../door.ts";
import { pipelined } from "../pipelined.ts";
import type { LocalEntry } from "./local-source.ts";
import { type SendJob, writeInParts } from "./write-parts.ts";

/** Bytes of one archive. As base64 in JSON it stays under every limit on the way. */
const archiveBytes = 4 * 1024 * 1024;
const archiveEntries = 4_000;
/** Larger files are written one by one, in parts. */
const smallBytes = 1024 * 1024;
/** Enough to hide the round trip to the fleet; more archives would only wait in the session's queue. */
const archivesAtOnce = 3;

export interface UploadOptions {
  readonly send: SendJob;
  readonly onBytes: (bytes: number) => void;
}

/** Uploads entries. Links go in the last archives, when their targets exist. */
export async function upload(
  entries: readonly LocalEntry[],
  { send, onBytes }: UploadOptions,
): Promise<void> {
  const ordered = entries.toSorted((a, b) => Number(a.type === "symlink") - Number(b.type === "symlink"));
  const small = ordered.filter(({ type, size }) => type !== "file" || size <= smallBytes);
  await pipelined(archivesAtOnce, archives(small), async (some) => {
    await send(await archiveJob(some));
    onBytes(some.reduce((sum, { size }) => sum + size, 0));
  });
  for (const { place, path, mode, type, size } of ordered) {
    if (type === "file" && size > smallBytes)
      await writeInParts({ send, onBytes }, path, createReadStream(place), { mode });
  }
}

function* archives(entries: readonly LocalEntry[]): Generator<LocalEntry[]> {
  let some: LocalEntry[] = [];
  let bytes = 0;
  for (const entry of entries) {
    if (some.length > 0 && (bytes + entry.size > archiveBytes || some.length >= archiveEntries)) {
      yield some;
      some = [];
      bytes = 0;
    }
    some.push(entry);
    bytes += entry.size;
  }
  if (some.length > 0) yield some;
}

async function archiveJob(entries: readonly LocalEntry[]): Promise<JobOrder["request"]> {
  const packed = [];
  for (const { place, path, type, mode, modifiedMs, target } of entries) {
    const bytes = type === "file" ? await readFile(place) : undefined;
    packed.push({ path, type, mode, modifiedMs, target, bytes });
  }
  return { kind: "archive", direction: "in", path: "", content: (await packTar(packed)).toString("base64") };
}
