import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { parse } from "secure-json-parse";
import { GatheredBytes } from "./gathered-bytes.ts";
import { Problem } from "./problem.ts";

export interface BodyLimits {
  readonly maxBytes: number;
  readonly maxMs: number;
  /** Called with each chunk's size before the chunk is kept; throws when the budget is exhausted. */
  readonly onBytes: (bytes: number) => void;
}

/** Reads the whole body. Fails as soon as it is too large or too slow. Allocates by what arrives, not by what the headers claim. */
export async function readBody(message: IncomingMessage, limits: BodyLimits): Promise<Buffer> {
  const { maxBytes, maxMs, onBytes } = limits;
  const claimed = Number(message.headers["content-length"] ?? 0);
  if (claimed > maxBytes) throw tooLarge(maxBytes);
  const body = new GatheredBytes();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => finish(tooSlow(maxMs)), maxMs);
    const finish = (problem?: Error) => {
      clearTimeout(timer);
      message.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
      message.on("error", () => {});
      if (problem) {
        message.pause();
        reject(problem);
      } else resolve();
    };
    const onData = (piece: Buffer) => {
      if (body.length + piece.length > maxBytes) return finish(tooLarge(maxBytes));
      try {
        onBytes(piece.length);
        body.add(piece);
      } catch (error) {
        finish(error as Error);
      }
    };
    const onEnd = () => finish();
    const onGone = () => finish(new Problem("malformed-request", "the body ended before it was complete"));
    message.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone);
  });
  return body.take();
}

export function tooLarge(maxBytes: number): Problem {
  return new Problem("body-too-large", `this key may send at most ${maxBytes} bytes in a body`);
}

export function tooSlow(maxMs: number): Problem {
  return new Problem("request-timeout", `the body did not arrive within ${maxMs} ms`);
}

/** Rejects `__proto__`, which would change the prototype of the object it is merged into. The schemas reject `constructor`. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new Problem("malformed-json", "it is not UTF-8");
  try {
    return parse(bytes, { constructorAction: "ignore" });
  } catch (error) {
    throw new Problem("malformed-json", error instanceof SyntaxError ? error.message : "it cannot be read");
  }
}
