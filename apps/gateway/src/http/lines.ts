import type { IncomingMessage } from "node:http";
import { tooLarge, tooSlow } from "./body.ts";
import { Problem } from "./problem.ts";

const newline = 0x0a;

/**
 * The lines of a body, as they come. Nothing is kept but the line that is not complete yet; the sender is held up while
 * nobody takes the next. Empty lines are left out.
 */
export async function* linesOf(
  message: IncomingMessage,
  { maxBytes, maxMs }: { readonly maxBytes: number; readonly maxMs: number },
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const piece of pieces(message, maxMs)) {
    let from = 0;
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, from)) {
      const line = Buffer.concat([...rest, piece.subarray(from, at)]);
      if (line.length > maxBytes) throw tooLarge(maxBytes);
      rest = [];
      restBytes = 0;
      from = at + 1;
      if (!isBlank(line)) yield line;
    }
    const tail = piece.subarray(from);
    restBytes += tail.length;
    if (restBytes > maxBytes) throw tooLarge(maxBytes);
    if (tail.length > 0) rest.push(tail);
  }
  const last = Buffer.concat(rest);
  if (!isBlank(last)) yield last;
}

/** The clock runs only while bytes are waited for. */
async function* pieces(message: IncomingMessage, maxMs: number): AsyncGenerator<Buffer> {
  const iterator = message[Symbol.asyncIterator]();
  for (;;) {
    const timer = Promise.withResolvers<never>();
    const timeout = setTimeout(() => timer.reject(tooSlow(maxMs)), maxMs);
    try {
      const next = await Promise.race([iterator.next(), timer.promise]);
      if (next.done) return;
      yield next.value as Buffer;
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem("malformed-request", "the body ended before it was complete");
    } finally {
      clearTimeout(timeout);
    }
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);
}
