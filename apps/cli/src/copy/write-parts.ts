import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import type { JobResult } from "@berth/protocol";
import type { JobOrder } from "../door.ts";

/** Runs one request to its end; throws if it did not succeed. */
export type SendJob = (request: JobOrder["request"]) => Promise<JobResult>;

/** Bytes that one job writes. As base64 in JSON it stays under every limit on the way. */
const partBytes = 4 * 1024 * 1024;

export interface WriteMore {
  readonly mode?: number | undefined;
  readonly append?: boolean | undefined;
}

/**
 * Writes content of any length. Content that fits one job is written by one. Longer content grows in a temporary file that
 * is renamed when complete, so that no reader sees half of it. Returns the last job's result.
 */
export async function writeInParts(
  { send, onBytes }: { readonly send: SendJob; readonly onBytes?: (bytes: number) => void },
  path: string,
  content: AsyncIterable<Uint8Array>,
  { mode, append = false }: WriteMore = {},
): Promise<JobResult> {
  const parts = inParts(content);
  const write = async (to: string, part: Buffer, more: boolean) => {
    const result = await send({
      kind: "write",
      path: to,
      content: part.toString("base64"),
      encoding: "base64",
      append: more,
      ...(mode === undefined ? {} : { mode }),
    });
    onBytes?.(part.length);
    return result;
  };
  const first = (await parts.next()).value ?? Buffer.alloc(0);
  let next = await parts.next();
  if (next.done) return write(path, first, append);
  const growing = append
    ? path
    : posix.join(posix.dirname(path), `.berth-part-${randomBytes(9).toString("base64url")}`);
  try {
    let result = await write(growing, first, append);
    for (; !next.done; next = await parts.next()) result = await write(growing, next.value, true);
    if (!append) await send({ kind: "move", from: growing, to: path, overwrite: true });
    return result;
  } catch (error) {
    if (!append) await send({ kind: "remove", path: growing, missingOk: true }).catch(() => {});
    throw error;
  }
}

async function* inParts(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, undefined> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; ) {
      const taken = chunk.subarray(at, at + partBytes - bytes);
      held.push(taken);
      bytes += taken.length;
      at += taken.length;
      if (bytes < partBytes) continue;
      yield Buffer.concat(held);
      held = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(held);
}
