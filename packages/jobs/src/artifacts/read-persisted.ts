import { createHash } from "node:crypto";
import type { FileContent, ReadOptions } from "@berth/sandbox/port";
import { throwIfAborted } from "../run-context.ts";
import type { PersistedFile } from "./artifacts-port.ts";

/** How a file is read, of the workspace or persisted. */
export type ReadSource = (
  options: Omit<ReadOptions, "maxBytes">,
) => Promise<Pick<FileContent, "bytes" | "size" | "sha256" | "scrubbed">>;

/** Reads a persisted file as the sandbox's files are read. */
export async function readPersisted(
  file: PersistedFile,
  { signal, onData, ...range }: Parameters<ReadSource>[0],
): ReturnType<ReadSource> {
  const hash = createHash("sha256");
  const parts: Uint8Array[] = [];
  for await (const chunk of await file.stream(range)) {
    if (signal) throwIfAborted(signal, "read");
    hash.update(chunk);
    if (onData) await onData(chunk);
    else parts.push(chunk);
  }
  return { bytes: Buffer.concat(parts), size: file.ref.size, sha256: hash.digest("hex") };
}
