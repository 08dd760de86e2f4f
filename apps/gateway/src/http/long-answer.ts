import { once } from "node:events";
import { BoundedWait } from "@berth/protocol";
import type { FastifyReply } from "fastify";

/** A client that takes nothing for this long has gone, or means harm. */
const stallMs = 60_000;

/** An answer that is written as it comes, past Fastify's own way of sending one. */
export class LongAnswer {
  readonly #reply: FastifyReply;
  readonly #signal: AbortSignal;

  /** The signal ends it: nothing is waited for after it. */
  constructor(reply: FastifyReply, type: string, signal: AbortSignal) {
    this.#reply = reply;
    this.#signal = signal;
    reply.hijack();
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value);
    }
    // The connection has served its purpose then, and would keep a gateway from stopping.
    reply.raw.writeHead(200, { "content-type": type, "x-accel-buffering": "no", connection: "close" });
    reply.raw.flushHeaders();
    // The stream lasts as long as the client listens, so its duration is no measure of this gateway.
    reply.request.endSpan?.();
  }

  /** Waits while the other side does not read. Throws when it takes too long, or the signal fired. */
  async write(text: string): Promise<void> {
    const { raw } = this.#reply;
    if (raw.write(text)) return;
    using wait = new BoundedWait().endWith(this.#signal).endAfter(stallMs);
    await once(raw, "drain", { signal: wait.signal });
  }

  /** Complete. */
  end(): void {
    const { raw } = this.#reply;
    if (raw.writableNeedDrain) raw.destroy();
    else raw.end();
  }

  /** Breaks the connection off, so that no client takes a part for the whole. */
  breakOff(): void {
    this.#reply.raw.destroy();
  }
}
