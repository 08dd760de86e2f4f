import type { Context } from "./context.ts";

/** Stdin that fits a job. A gateway accepts requests of 16 MiB, and base64 adds a third. */
const mostBytes = 8 * 1024 * 1024;

/** All of stdin, or its beginning and the unread rest. */
export interface Stdin {
  readonly head: Buffer;
  readonly rest?: AsyncIterable<Buffer>;
}

/** Reads as much as fits one job. */
export async function readStdin({ terminal }: Context): Promise<Stdin> {
  if (process.stdin.isTTY) terminal.note("berth: reading stdin; Ctrl-D ends it");
  const chunks: Buffer[] = [];
  let bytes = 0;
  const source = process.stdin[Symbol.asyncIterator]() as AsyncIterableIterator<Buffer>;
  for (let next = await source.next(); !next.done; next = await source.next()) {
    chunks.push(next.value);
    bytes += next.value.length;
    if (bytes > mostBytes) return { head: Buffer.concat(chunks), rest: source };
  }
  return { head: Buffer.concat(chunks) };
}

export async function* wholeStdin({ head, rest }: Stdin): AsyncGenerator<Buffer> {
  yield head;
  if (rest) yield* rest;
}
