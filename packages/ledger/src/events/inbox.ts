import { Fault, type JobResult, redisKeys, sandboxKey, withText } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readResult } from "./last-event.ts";
import type { StreamEntry, StreamTail, Watch } from "./stream-tail.ts";
import { type ToldEnd, toldEnd } from "./told-end.ts";

/** Somebody waits for one job's end. */
export interface Expectation {
  readonly jobId: string;
  readonly result: Promise<JobResult>;
  /** Waits no longer; the promise stays as it is. */
  forget(): void;
}

interface Waiting {
  readonly resolve: (result: Promise<JobResult>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Entries that were read are removed after this many. */
const readBeforeTrim = 200;

/** The ends of any number of jobs, as workers tell them to one client. */
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
    // Whoever awaits sees the fault; a job nobody awaits must not end the process.
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
    this.#rest();
  }

  #take(entries: readonly StreamEntry[]): void {
    for (const [id, fields] of entries) {
      this.#last = id.toString();
      this.#tell(toldEnd(fields));
    }
    this.#readSinceTrim += entries.length;
    if (this.#readSinceTrim >= readBeforeTrim) {
      this.#readSinceTrim = 0;
      // What is at the position itself stays: an inbox that is empty would expire no sooner.
      this.#commands.xtrim(this.#stream, "MINID", this.#last).catch(() => {});
    }
    this.#rest();
  }

  #tell(end: ToldEnd): void {
    const those = this.#waiting.get(end.jobId);
    if (!those) return;
    this.#waiting.delete(end.jobId);
    const result = this.#whole(end);
    for (const { resolve } of those) resolve(result);
  }

  async #whole({ jobId, key, text, isExcerpt }: ToldEnd): Promise<JobResult> {
    if (!isExcerpt) return withText(JSON.parse(text));
    return readResult(this.#commands, sandboxKey.parse(key), jobId, this.#closed.signal);
  }

  #rejectAll(fault: Fault): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#rest();
    for (const those of all) for (const { reject } of those) reject(fault);
  }

  /** Nobody waits: nothing is read, and the position is kept. */
  #rest(): void {
    if (this.#waiting.size > 0) return;
    this.#watch?.stop();
    this.#watch = undefined;
  }
}

function aborted(): Fault {
  return new Fault("aborted", { operation: "waiting for a job's end" });
}
