import { once } from "node:events";
import { BoundedWait } from "@berth/protocol";
import type { FastifyReply } from "fastify";

/** A client that reads nothing for this long is treated as gone. */
const stallMs = 60_000;

/** An answer that is written piece by piece, without Fastify's reply. */
export class LongAnswer {
  readonly #reply: FastifyReply;
  readonly #signal: AbortSignal;

  /** Ends the answer and every wait in it. */
  constructor(reply: FastifyReply, type: string, signal: AbortSignal) {
    this.#reply = reply;
    this.#signal = signal;
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    // A kept-alive connection would delay the gateway's stop.
    reply.raw.writeHead(200, { "content-type": type, "x-accel-buffering": "no", connection: "close" });
    reply.raw.flushHeaders();
    // A stream lasts as long as its client listens, so do not count its duration as latency.
    reply.request.endSpan?.();
  }

  /** Waits for the client to read (backpressure). Throws on the time limit or the signal. */
  async write(text: string): Promise<void> {
    const { raw } = this.#reply;
    if (raw.write(text)) return;
    using wait = new BoundedWait().endWith(this.#signal).endAfter(stallMs);
    await once(raw, "drain", { signal: wait.signal });
  }

  /** Ends a complete answer. */
  end(): void {
    const { raw } = this.#reply;
    if (raw.writableNeedDrain) raw.destroy();
    else raw.end();
  }

  /** Resets the connection, so that no client takes a partial answer for a complete one. */
  breakOff(): void {
    this.#reply.raw.destroy();
  }
}
