import type { ServerResponse } from "node:http";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
import { Problem } from "../http/problem.ts";
import type { Principal } from "../keys/principal.ts";

export interface OpenStreamsOptions {
  readonly max: number;
  readonly maxPerKey: number;
  readonly heartbeatMs: number;
  /** Called at each heartbeat: revoking a key ends the streams it opened. */
  readonly stillGood: (principal: Principal) => Promise<boolean>;
}

/** Reconnect delay that a stopping gateway sends; other gateways are up by then. */
const retryMs = 1_000;

interface OpenStream {
  readonly principal: Principal;
  readonly response: ServerResponse;
  readonly over: AbortController;
  /** Whether this stream's format allows comment lines. */
  readonly comments: boolean;
}

/** Counts this gateway's long answers, sends their heartbeats, and ends them when the gateway stops. */
export class OpenStreams {
  readonly #options: OpenStreamsOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #open = new Set<OpenStream>();
  #timer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(options: OpenStreamsOptions) {
    const { max, maxPerKey } = options;
    this.#options = options;
    this.#limit = new ConcurrencyLimit({
      ...{ max, maxPerKey, code: "too-many-streams", what: "event streams open" },
      ceiling: "streams",
    });
  }

  get size(): number {
    return this.#open.size;
  }

  /** Opens a stream, or refuses. The signal fires when the stream must end: the listener left, or the gateway stops. */
  open(
    principal: Principal,
    response: ServerResponse,
    { comments = true }: { readonly comments?: boolean } = {},
  ): { readonly signal: AbortSignal; close(): void } {
    if (this.#closing) throw new Problem("unavailable", "this gateway is stopping");
    const place = this.#limit.take(principal);
    const stream = { principal, response, comments, over: new AbortController() };
    this.#open.add(stream);
    this.#timer ??= setInterval(() => this.#beat(), this.#options.heartbeatMs);
    response.once("close", () => stream.over.abort());
    const close = () => {
      place[Symbol.dispose]();
      this.#open.delete(stream);
      if (this.#open.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
    return { signal: stream.over.signal, close };
  }

  /** Asks every listener to reconnect, to another gateway or later. */
  stop(): void {
    this.#closing = true;
    clearInterval(this.#timer);
    for (const { response, over, comments } of this.#open) {
      if (comments) {
        response.write(`retry: ${retryMs}\n: this gateway is stopping; reconnect with Last-Event-ID\n\n`);
      }
      over.abort();
    }
  }

  #beat(): void {
    const byKey = Map.groupBy(this.#open, ({ principal }) => principal.id);
    for (const streams of byKey.values()) void this.#beatFor(streams);
  }

  async #beatFor(streams: readonly OpenStream[]): Promise<void> {
    const [first] = streams;
    if (!first) return;
    // If Redis is down the key may still be valid, so keep the stream.
    const good = await this.#options.stillGood(first.principal).catch(() => true);
    for (const { response, over, comments } of streams) {
      if (!good) over.abort();
      // Skip the heartbeat of a listener that does not read, so that nothing piles up.
      const idle = !response.writableNeedDrain && !over.signal.aborted;
      if (comments && idle) response.write(": still here\n\n");
    }
  }
}
