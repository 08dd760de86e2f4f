import { setTimeout as sleep } from "node:timers/promises";
import type { OutputStream } from "@berth/protocol";
import type { OutputFilter, OutputPart } from "../port.ts";

/** How long a quiet command's last bytes may be held back before the filter is asked for them. */
const pauseMs = 100;
const lateMs = 5_000;

type Consumer = (stream: OutputStream, bytes: Buffer) => void | Promise<void>;

/**
 * Puts a filter before a consumer, and calls it one piece at a time, as it would be called without. What is given to `push` is
 * overwritten once `push` has returned, and a filter may return views of it: pieces that wait for their turn are copied.
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

  /** Without a promise where none is needed. */
  #inTurn(stream: OutputStream, leaving: readonly Buffer[]): void | Promise<void> {
    for (const [at, bytes] of leaving.entries()) {
      const pending = this.#consumer(stream, bytes);
      if (pending === undefined) continue;
      const rest = leaving.slice(at + 1).map((waiting) => Buffer.from(waiting));
      return pending.then(() => this.#inTurn(stream, rest));
    }
    return undefined;
  }

  /** Passes the rest on. A consumer that takes nothing any more, as that of a killed command, is not waited for long. */
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
    // What is under way asks for another pause when more is held.
    if (this.#busy !== undefined) {
      this.#timer = setTimeout(() => this.#release(), pauseMs);
      return;
    }
    void settledSoon(this.#pass(this.#each(this.#filter.release())));
  }

  /** The consumer sees all of them before it is waited for: what it keeps must be whole. */
  async #each(parts: readonly OutputPart[]): Promise<void> {
    await Promise.all(parts.map(({ stream, bytes }) => this.#consumer(stream, bytes)));
  }
}

/** What is thrown is the consumer's own to tell. */
async function settledSoon(pending: void | Promise<void>): Promise<void> {
  const late = new AbortController();
  const waited = sleep(lateMs, undefined, { signal: late.signal, ref: false });
  await Promise.race([pending, waited]).catch(() => {});
  late.abort();
  await waited.catch(() => {});
}
