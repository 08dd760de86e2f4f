import {
  type JobResult,
  type SandboxKey,
  sandboxKey,
  type TenantId,
  tenantOf,
  withText,
} from "@berth/protocol";
import { onReconnect, type Redis } from "@berth/redis";
import { readResult } from "./last-event.ts";
import { parseEnd } from "./published-end.ts";
import { passes, pause } from "./redis-errors.ts";
import { ResultShare, type SharedEntry } from "./result-share.ts";

export interface ResultGroupOptions {
  /** Name of this consumer of the group. After a restart, the same name gets the results that it had not acknowledged. */
  readonly consumer: string;
  /** Where a group begins that does not exist yet: with the oldest result that is kept (default), or with the next. */
  readonly from?: "start" | "now";
  /** A result that was not acknowledged for this long is delivered again, to the first consumer that asks; default 60 s. */
  readonly claimIdleMs?: number;
  /** Results fetched at once; default 32. Each is at most 32 KiB. */
  readonly batch?: number;
}

export interface GroupResult {
  readonly jobId: string;
  readonly key: SandboxKey;
  /** The tenant of the sandbox; `shared` for the one that all tenants share. */
  readonly tenant: TenantId;
  /** At most 32 KiB as JSON. A longer result has the beginning of its outputs, no `text` and no lists. */
  readonly result: JobResult;
  /** Whether `result` is only a part. */
  readonly isExcerpt: boolean;
  /** All that is kept of the result, for a day after the job's end. Throws `job-unknown` later. */
  whole(): Promise<JobResult>;
  /** Acknowledges it: no consumer of the group gets it again. */
  ack(): Promise<void>;
}

const defaults = { claimIdleMs: 60_000, batch: 32 } as const;
const blockMs = 2_000;
const retryMs = 100;
const openEveryMs = 1_000;

/**
 * Every job's result, shared among the consumers of a group.
 *
 *   what this consumer had not acknowledged ──▶ what was left alone for `claimIdleMs` ──▶ new ones, as they come
 *            ▲  connection lost                            ▲  every half of it                    │
 *            └─────────────────────────────────────────────┴──────────────────────────────────────┘
 *
 * At-least-once delivery: each result goes to one consumer, and to another if it is not acknowledged in time. Handling a result
 * should therefore be idempotent. Results come in the order of the ends, except redelivered ones.
 *
 * The stream keeps the last 100,000 results or so, of the whole fleet. A group that falls further behind loses the oldest:
 * those it was never given, and those it was given, did not acknowledge and would have been given again. `lagLost` counts
 * both, once, at the consumer that notices. The jobs' own streams still have their results for a day.
 */
export class ResultGroup implements AsyncIterable<GroupResult>, AsyncDisposable {
  readonly #share: ResultShare;
  readonly #commands: Redis;
  readonly #blocking: Redis;
  readonly #from: "0" | "$";
  readonly #claimIdleMs: number;
  readonly #closed = new AbortController();
  /** Ids that this process has delivered and that are not acknowledged. */
  readonly #given = new Set<string>();
  #pendingAfter: string | undefined = "0-0";
  #claimAfter = "0-0";
  #claimAtMs = 0;
  #openAtMs = 0;

  /** @internal Its users get it from a `Berth`. The blocking connection is the group's own, and closed with it. */
  constructor(commands: Redis, blocking: Redis, group: string, options: ResultGroupOptions) {
    const { consumer, batch = defaults.batch } = options;
    this.#share = new ResultShare(commands, blocking, { group, consumer, batch });
    this.#commands = commands;
    this.#blocking = blocking;
    this.#from = options.from === "now" ? "$" : "0";
    this.#claimIdleMs = options.claimIdleMs ?? defaults.claimIdleMs;
    // If a reply was lost with its connection, this consumer has entries pending that it never saw.
    onReconnect(blocking, () => {
      this.#pendingAfter = "0-0";
    });
  }

  /** Results that Redis trimmed before they were acknowledged. Undefined with a Redis before 7, which does not count them. */
  get lagLost(): number | undefined {
    return this.#share.lost;
  }

  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** One loop at a time. Results that were fetched when a loop is left come in the next loop, or after the consumer restarts. */
  async *[Symbol.asyncIterator](): AsyncGenerator<GroupResult> {
    this.#pendingAfter = "0-0";
    while (!this.closed) {
      const entries = await this.#tried(() => this.#fetch());
      yield* this.#handedOut(entries);
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#blocking.disconnect();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async *#handedOut(fetched: readonly SharedEntry[]): AsyncGenerator<GroupResult> {
    let heldAtMs = performance.now();
    for (let entries = [...fetched]; entries.length > 0 && !this.closed; ) {
      // If a consumer takes long over one result, another may have claimed the rest.
      if (performance.now() - heldAtMs > this.#claimIdleMs / 3) {
        const mine = entries;
        entries = await this.#tried(() => this.#share.hold(mine));
        heldAtMs = performance.now();
      }
      const entry = entries.shift();
      if (entry) yield this.#give(entry);
    }
  }

  #give({ id, fields }: SharedEntry): GroupResult {
    const { jobId, text, isExcerpt, ...end } = parseEnd(fields);
    this.#given.add(id);
    const key = sandboxKey.parse(end.key);
    const result: JobResult = isExcerpt ? JSON.parse(text) : withText(JSON.parse(text));
    return {
      jobId,
      key,
      tenant: tenantOf(key),
      result,
      isExcerpt,
      whole: async () =>
        isExcerpt ? await readResult(this.#commands, key, jobId, this.#closed.signal) : result,
      ack: async () => {
        await this.#share.ack(id);
        this.#given.delete(id);
      },
    };
  }

  /** Returns nothing for now if Redis is away. */
  async #tried(call: () => Promise<SharedEntry[]>): Promise<SharedEntry[]> {
    try {
      return await call();
    } catch (error) {
      if (this.closed) return [];
      // The group was removed, or Redis restarted without it: `open` creates it again.
      const gone = error instanceof Error && /\bNOGROUP\b/.test(error.message);
      if (!gone && !passes(error)) throw error;
      this.#openAtMs = 0;
      this.#pendingAfter = "0-0";
      await pause(retryMs, this.#closed.signal);
      return [];
    }
  }

  async #fetch(): Promise<SharedEntry[]> {
    const now = performance.now();
    if (now >= this.#openAtMs) {
      await this.#share.open(this.#from);
      this.#openAtMs = now + openEveryMs;
    }
    if (this.#pendingAfter !== undefined) return this.#pending(this.#pendingAfter);
    if (now >= this.#claimAtMs) return this.#claim();
    return this.#share.fresh(Math.min(blockMs, Math.ceil(this.#claimIdleMs / 2)));
  }

  async #pending(after: string): Promise<SharedEntry[]> {
    const { entries, last } = await this.#share.pending(after);
    this.#pendingAfter = last;
    return entries.filter(({ id }) => !this.#given.has(id));
  }

  async #claim(): Promise<SharedEntry[]> {
    const { entries, next } = await this.#share.claim(this.#claimIdleMs, this.#claimAfter);
    this.#claimAfter = next;
    if (next === "0-0") this.#claimAtMs = performance.now() + this.#claimIdleMs / 2;
    return entries;
  }
}
