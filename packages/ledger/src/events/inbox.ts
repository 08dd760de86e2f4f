import { Fault, type JobResult, redisKeys, sandboxKey, withText } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readResult } from "./last-event.ts";
import { type PublishedEnd, parseEnd } from "./published-end.ts";
import type { StreamEntry, StreamTail, Watch } from "./stream-tail.ts";

/** A wait for one job's end. */
export interface Expectation {
  readonly jobId: string;
  readonly result: Promise<JobResult>;
  /** Gives up waiting. The promise stays pending. */
  forget(): void;
}

interface Waiting {
  readonly resolve: (result: Promise<JobResult>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Trims the stream each time it has read this many entries. */
const readBeforeTrim = 200;

/** Receives the ends of any number of jobs, as workers publish them to one client. */
export class Inbox {
  readonly #commands: Redis;
  readonly #tail: StreamTail;
  readonly #stream: string;
  readonly #waiting = new Map<string, Set<Waiting>>();
  #watch: Watch | undefined;
  #last = "0-0";
  #readSinceTrim = 0;
  readonly #closed = new AbortController();

  constructor(commands: Redis, tail: StreamTail, name: string) {
    this.#commands = commands;
    this.#tail = tail;
    this.#stream = redisKeys.inbox(name);
  }

  expect(jobId: string): Expectation {
    const { promise, resolve, reject } = Promise.withResolvers<JobResult>();
    // A caller that awaits sees the fault. A job that is not awaited must not end the process.
    promise.catch(() => {});
    if (this.#closed.signal.aborted) reject(aborted());
    const waiting: Waiting = { resolve, reject };
    this.#waiting.set(jobId, (this.#waiting.get(jobId) ?? new Set()).add(waiting));
    if (!this.#closed.signal.aborted)
      this.#watch ??= this.#tail.watch({
        stream: this.#stream,
        after: this.#last,
        onEntries: (entries) => this.#take(entries),
        onFault: (fault) => this.#rejectAll(fault),
      });
    return { jobId, result: promise, forget: () => this.#forget(jobId, waiting) };
  }

  close(): void {
    this.#closed.abort();
    this.#rejectAll(aborted());
    this.#commands.unlink(this.#stream).catch(() => {});
  }

  #forget(jobId: string, waiting: Waiting): void {
    const those = this.#waiting.get(jobId);
    those?.delete(waiting);
    if (those?.size === 0) this.#waiting.delete(jobId);
    this.#stopIfUnused();
  }

  #take(entries: readonly StreamEntry[]): void {
    for (const [id, fields] of entries) {
      this.#last = id.toString();
      this.#deliver(parseEnd(fields));
    }
    this.#readSinceTrim += entries.length;
    if (this.#readSinceTrim >= readBeforeTrim) {
      this.#readSinceTrim = 0;
      // The entry at the position itself stays: removing it would not make the inbox expire sooner.
      this.#commands.xtrim(this.#stream, "MINID", this.#last).catch(() => {});
    }
    this.#stopIfUnused();
  }

  #deliver(end: PublishedEnd): void {
    const those = this.#waiting.get(end.jobId);
    if (!those) return;
    this.#waiting.delete(end.jobId);
    const result = this.#whole(end);
    for (const { resolve } of those) resolve(result);
  }

  async #whole({ jobId, key, text, isExcerpt }: PublishedEnd): Promise<JobResult> {
    if (!isExcerpt) return withText(JSON.parse(text));
    return readResult(this.#commands, sandboxKey.parse(key), jobId, this.#closed.signal);
  }

  #rejectAll(fault: Fault): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#stopIfUnused();
    for (const those of all) for (const { reject } of those) reject(fault);
  }

  /** Stops reading while no caller waits. Keeps the position. */
  #stopIfUnused(): void {
    if (this.#waiting.size > 0) return;
    this.#watch?.stop();
    this.#watch = undefined;
  }
}

function aborted(): Fault {
  return new Fault("aborted", { operation: "waiting for a job's end" });
}
