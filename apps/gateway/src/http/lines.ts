import type { IncomingMessage } from "node:http";
import { type BodyLimits, tooLarge, tooSlow } from "./body.ts";
import { GatheredBytes } from "./gathered-bytes.ts";
import { Problem } from "./problem.ts";

const newline = 0x0a;

export interface LineLimits extends BodyLimits {
  /** Called with the bytes that left memory. `maxBytes` bounds a line, `maxMs` the time between two chunks. */
  readonly onDone: (bytes: number) => void;
}

/** One line of a body. Its bytes count as in memory until `done` is called. */
export interface Line {
  readonly bytes: Buffer;
  done(): void;
}

/**
 * Yields the lines of a body as they arrive. Keeps only the incomplete last line; the sender waits while the consumer works on a
 * line. Skips empty lines.
 */
export async function* linesOf(message: IncomingMessage, limits: LineLimits): AsyncGenerator<Line> {
  const { maxBytes, maxMs, onBytes } = limits;
  const rest = new GatheredBytes();
  for await (const piece of pieces(message, maxMs)) {
    onBytes(piece.length);
    let from = 0;
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, from)) {
      gather(rest, piece.subarray(from, at), maxBytes);
      from = at + 1;
      yield* lineOf(rest.take(), 1, limits);
    }
    gather(rest, piece.subarray(from), maxBytes);
  }
  yield* lineOf(rest.take(), 0, limits);
}

function gather(rest: GatheredBytes, piece: Buffer, maxBytes: number): void {
  if (rest.length + piece.length > maxBytes) throw tooLarge(maxBytes);
  rest.add(piece);
}

function* lineOf(bytes: Buffer, ending: number, { onDone }: LineLimits): Generator<Line> {
  const done = () => onDone(bytes.length + ending);
  if (isBlank(bytes)) done();
  else yield { bytes, done };
}

/** The timer runs only while waiting for bytes. */
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
