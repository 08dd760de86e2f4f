import { Fault, type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import { onReconnect, type Redis } from "@berth/redis";
import { readEnds } from "../jobs/job-record.ts";
import { eventsOf } from "./event-channels.ts";

/** One watched wait for a job's end. */
export interface CheckedWait {
  /** Resolves when a look finds the job's end. Rejects when two looks in a row find that Redis does not know the job. */
  readonly result: Promise<JobResult>;
  /** Must be called, however the wait ended. */
  stop(): void;
}

interface Waiting {
  readonly key: SandboxKey;
  readonly jobId: string;
  /** When its record was last read, or its wait began. */
  lookedMs: number;
  /** Looks in a row that found no record of the job, or no end of a job that has ended. */
  unknown: number;
  readonly resolve: (result: JobResult) => void;
  readonly reject: (fault: Fault) => void;
}

export interface EndCheckOptions {
  /** Looks at each job this often. */
  readonly everyMs?: number;
}

const defaultEveryMs = 30_000;
/** A job that Redis does not know is looked at again after this long. */
const againMs = 1_000;
/** Ticks per interval, so that a job whose wait begins between two ticks is not looked at much later than others. */
const ticks = 4;
/** Records asked for in one round trip. */
const idsPerLook = 1_000;
/** Ends read at once: each may be a megabyte. */
const endsAtOnce = 16;

/**
 * Ends waits for results that can no longer arrive. An inbox and a job's stream can lose it: Redis was restored or emptied,
 * an inbox was trimmed or expired while its client was away, or a worker's last publication was lost.
 *
 * Reads the records of the awaited jobs when the blocking connection is reopened, and every half minute. A record with
 * an outcome gives the end from the job's stream. A job without a record, twice, ends the wait with the fault `job-unknown`.
 *
 * Only jobs that were accepted may be watched: others have no record.
 */
export class EndCheck {
  readonly #commands: Redis;
  readonly #everyMs: number;
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  #connected: boolean;
  #looking = false;
  #closed = false;

  constructor(commands: Redis, blocking: Redis, { everyMs = defaultEveryMs }: EndCheckOptions = {}) {
    this.#commands = commands;
    this.#everyMs = everyMs;
    this.#connected = blocking.status === "ready";
    this.#stopListening = onReconnect(blocking, () => this.#onReady());
  }

  watch(key: SandboxKey, jobId: string): CheckedWait {
    const { promise, resolve, reject } = Promise.withResolvers<JobResult>();
    promise.catch(() => {});
    const waiting: Waiting = { key, jobId, lookedMs: performance.now(), unknown: 0, resolve, reject };
    this.#waiting.add(waiting);
    if (!this.#closed) this.#timer ??= setInterval(() => this.#onTick(), this.#everyMs / ticks);
    return { result: promise, stop: () => this.#stop(waiting) };
  }

  close(): void {
    this.#closed = true;
    this.#stopListening();
    this.#stopTimers();
  }

  #stop(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    if (this.#waiting.size === 0) this.#stopTimers();
  }

  #stopTimers(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#again);
    this.#timer = undefined;
    this.#again = undefined;
  }

  #onReady(): void {
    // Nothing was read before the first connection, so nothing was missed.
    if (this.#connected) void this.#look([...this.#waiting]);
    this.#connected = true;
  }

  #onTick(): void {
    const before = performance.now() - this.#everyMs * (1 - 1 / ticks);
    const due = [...this.#waiting].filter(({ lookedMs }) => lookedMs <= before);
    if (due.length > 0) void this.#look(due);
  }

  async #look(all: readonly Waiting[]): Promise<void> {
    if (this.#looking) return this.#lookAgain();
    this.#looking = true;
    try {
      for (let from = 0; from < all.length; from += idsPerLook)
        await this.#lookAt(all.slice(from, from + idsPerLook));
    } catch {
      // Redis is away again, or full of work.
      this.#lookAgain();
    }
    this.#looking = false;
  }

  #lookAgain(): void {
    if (this.#closed || this.#waiting.size === 0) return;
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      void this.#look([...this.#waiting]);
    }, againMs);
  }

  async #lookAt(those: readonly Waiting[]): Promise<void> {
    const known = await readEnds(this.#commands, those);
    const ended: Waiting[] = [];
    const nowMs = performance.now();
    for (const waiting of those) waiting.lookedMs = nowMs;
    for (const [index, waiting] of those.entries()) {
      const hasEnded = known[index];
      if (hasEnded === undefined) this.#missing(waiting);
      else if (hasEnded) ended.push(waiting);
      else waiting.unknown = 0;
    }
    for (let from = 0; from < ended.length; from += endsAtOnce)
      await Promise.all(ended.slice(from, from + endsAtOnce).map((waiting) => this.#readEnd(waiting)));
  }

  async #readEnd(waiting: Waiting): Promise<void> {
    if (!this.#waiting.has(waiting)) return;
    const stream = redisKeys.events(waiting.key, waiting.jobId);
    const last = await this.#commands.xrevrangeBuffer(stream, "+", "-", "COUNT", 1);
    const [event] = eventsOf(last);
    if (event?.type === "finished") waiting.resolve(event.result);
    else this.#missing(waiting);
  }

  #missing(waiting: Waiting): void {
    if (!this.#waiting.has(waiting)) return;
    waiting.unknown++;
    if (waiting.unknown > 1) waiting.reject(new Fault("job-unknown", { jobId: waiting.jobId }));
    else this.#lookAgain();
  }
}
