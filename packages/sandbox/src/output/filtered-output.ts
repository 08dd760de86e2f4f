import { setTimeout as sleep } from "node:timers/promises";
import type { OutputStream } from "@berth/protocol";
import type { OutputFilter, OutputPart } from "../port.ts";

/** The filter may hold back a quiet command's last bytes for this long. */
const pauseMs = 100;
const lateMs = 5_000;

type Consumer = (stream: OutputStream, bytes: Buffer) => void | Promise<void>;

/**
 * Puts a filter before a consumer, which gets one piece at a time. The bytes given to `push` are overwritten once `push` has returned, and a
 * filter may return views of them, so pieces that wait for their turn are copied.
 */
export class FilteredOutput {
  readonly #filter: OutputFilter;
  readonly #consumer: Consumer;
  #busy: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(filter: OutputFilter, consumer: Consumer) {
    this.#filter = filter;
    this.#consumer = consumer;
  }

  push(stream: OutputStream, bytes: Buffer): void | Promise<void> {
    if (this.#busy !== undefined) {
      const kept = Buffer.from(bytes);
      return this.#busy.then(() => this.push(stream, kept));
    }
    const leaving = this.#filter.push(stream, bytes);
    if (this.#filter.isWaiting) this.#timer ??= setTimeout(() => this.#release(), pauseMs);
    const [first] = leaving;
    if (first === undefined) return undefined;
    if (leaving.length === 1) return this.#pass(this.#consumer(stream, first));
    return this.#pass(this.#inTurn(stream, leaving));
  }

  /** Returns no promise if the consumer returned none. */
  #inTurn(stream: OutputStream, leaving: readonly Buffer[]): void | Promise<void> {
    for (const [at, bytes] of leaving.entries()) {
      const pending = this.#consumer(stream, bytes);
      if (pending === undefined) continue;
      const rest = leaving.slice(at + 1).map((waiting) => Buffer.from(waiting));
      return pending.then(() => this.#inTurn(stream, rest));
    }
    return undefined;
  }

  /** Passes the rest on. Waits only a bounded time for a consumer that takes nothing any more, as after a kill. */
  async end(): Promise<void> {
    this.stop();
    await settledSoon(this.#busy);
    await settledSoon(this.#each(this.#filter.end()));
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #pass(pending: void | Promise<void>): void | Promise<void> {
    if (pending === undefined) return undefined;
    this.#busy = pending.finally(() => {
      this.#busy = undefined;
    });
    return this.#busy;
  }

  #release(): void {
    this.#timer = undefined;
    // The consumer is busy: try again after another pause.
    if (this.#busy !== undefined) {
      this.#timer = setTimeout(() => this.#release(), pauseMs);
      return;
    }
    void settledSoon(this.#pass(this.#each(this.#filter.release())));
  }

  /** Passes all parts to the consumer before it waits: a consumer that hangs has still got all of them. */
  async #each(parts: readonly OutputPart[]): Promise<void> {
    await Promise.all(parts.map(({ stream, bytes }) => this.#consumer(stream, bytes)));
  }
}

/** Waits at most `lateMs`. Drops errors, which the consumer reports itself. */
async function settledSoon(pending: void | Promise<void>): Promise<void> {
  const late = new AbortController();
  const waited = sleep(lateMs, undefined, { signal: late.signal, ref: false });
  await Promise.race([pending, waited]).catch(() => {});
  late.abort();
  await waited.catch(() => {});
}
