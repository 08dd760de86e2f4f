import { passes } from "@berth/ledger";
import { isSuccess, type JobResult, withText } from "@berth/protocol";
import { type Ahead, LookAhead } from "./look-ahead.ts";
import type { JobOrder } from "./order.ts";
import { isNoRoom, isOrderFault } from "./order-faults.ts";
import type { EnqueuedJob } from "./pending-job.ts";
import { PerSecond } from "./per-second.ts";
import { untilRoom } from "./until-room.ts";

export type Orders = Iterable<JobOrder> | AsyncIterable<JobOrder>;

export interface BatchOptions {
  /** Names the batch. Its jobs are `<id>-0`, `<id>-1`, …, so that a second run finds the jobs of the first. */
  readonly id: string;
  /** Maximum of jobs in flight, results not yet read included; default 1,000. */
  readonly inFlight?: number;
  /** The number of orders, if the source does not have a length. */
  readonly total?: number;
  /** Indexes of orders to skip: they are not submitted, and yield no result. */
  readonly done?: ReadonlySet<number>;
}

export interface BatchResult {
  readonly index: number;
  readonly jobId: string;
  readonly result: JobResult;
}

export interface BatchProgress {
  /** Known for arrays and sets, if given as an option, and once the last order was read. */
  readonly total: number | undefined;
  readonly submitted: number;
  readonly finished: number;
  readonly failed: number;
  /** Finished jobs per second, over the last ten seconds. */
  readonly perSecond: number;
}

const defaultInFlight = 1_000;
/** Orders read ahead: enough to find several of one sandbox among those of many tenants. */
const aheadMost = 1_000;
/** Jobs in flight are spread over at least `sandboxes` sandboxes. A sandbox with `most` jobs in flight is no longer preferred. */
const share = { sandboxes: 16, most: 4 } as const;
/** Waits this long for the order source before it submits what it has read. */
const gatherMs = 10;
/** Redis may be away for this long before the batch gives up; the same id goes on later. */
const outageMs = 60_000;

/**
 * Runs many jobs under one name, no faster than they end.
 *
 *   orders ──▶ ahead, by sandbox ──▶ one lane per session, so that a job that finds no room keeps its place ──▶ in flight ──▶
 *   finished ──▶ reader
 *
 * Holds at most `inFlight` orders and results, and a thousand orders read ahead. Prefers orders whose sandbox has jobs in
 * flight. Waits for a full sandbox or fleet. An invalid order ends as `refused`.
 * Any process can resume the batch with the same id: each order runs once, and earlier results are read again. Leaving
 * `results()` early submits nothing more; submitted jobs run on.
 */
export class Batch {
  readonly #submit: (order: JobOrder) => Promise<EnqueuedJob>;
  readonly #orders: Orders;
  readonly #options: BatchOptions;
  readonly #stopped = new AbortController();
  readonly #lanes = new Map<string, Promise<void>>();
  readonly #running = new Map<number, EnqueuedJob>();
  readonly #ahead: LookAhead;
  readonly #inFlight: number;
  readonly #ends = new PerSecond();
  readonly #ready: BatchResult[] = [];
  /** Orders taken whose result has not been read. */
  #open = 0;
  #total: number | undefined;
  #submitted = 0;
  #finished = 0;
  #failed = 0;
  #begun = false;
  /** While set, more orders are read before the next is chosen. */
  #filling: NodeJS.Timeout | undefined;
  #left = false;
  #ordersRead = false;
  #failure: { readonly reason: unknown } | undefined;
  #changed = Promise.withResolvers<void>();

  /** @internal Use `berth.batch`. */
  constructor(submit: (order: JobOrder) => Promise<EnqueuedJob>, orders: Orders, options: BatchOptions) {
    this.#submit = submit;
    this.#orders = orders;
    this.#options = options;
    this.#total = options.total ?? sizeOf(orders);
    this.#inFlight = options.inFlight ?? defaultInFlight;
    const each = Math.floor(this.#inFlight / share.sandboxes);
    this.#ahead = new LookAhead(Math.min(share.most, Math.max(1, each)));
  }

  progress(): BatchProgress {
    return {
      total: this.#total,
      submitted: this.#submitted,
      finished: this.#finished,
      failed: this.#failed,
      perSecond: this.#ends.rate,
    };
  }

  /** Submits nothing more and cancels the jobs in flight; `results()` yields their ends and finishes. */
  async cancel(): Promise<void> {
    this.#stopped.abort();
    this.#ahead.clear();
    this.#change();
    await Promise.all([...this.#running.values()].map((job) => job.cancel()));
  }

  /** Yields results as the jobs end. Reading a result submits the next order. Call once. */
  async *results(): AsyncGenerator<BatchResult> {
    if (this.#begun) throw new TypeError("the results of a batch can be read once");
    this.#begun = true;
    void this.#takeOrders();
    try {
      for (;;) {
        const { promise } = this.#changed;
        if (this.#left) return;
        const done = this.#ready.shift();
        if (done) {
          this.#close();
          yield done;
        } else if (this.#failure) throw this.#failure.reason;
        else if (this.#ordersRead && this.#open + this.#ahead.size === 0) return;
        else await promise;
      }
    } finally {
      this.leave();
    }
  }

  /** Ends `results()`, even while a reader waits. Submits nothing more; submitted jobs run on. */
  leave(): void {
    this.#left = true;
    this.#stopped.abort();
    this.#ahead.clear();
    this.#ready.length = 0;
    this.#change();
  }

  async #takeOrders(): Promise<void> {
    const { done } = this.#options;
    const { signal } = this.#stopped;
    let index = -1;
    try {
      for await (const order of this.#orders) {
        if (signal.aborted) break;
        index++;
        if (done?.has(index)) continue;
        this.#ahead.add({ index, order });
        if (this.#ahead.size < aheadMost) this.#fillSoon();
        else this.#fill();
        while (this.#ahead.size >= aheadMost && !signal.aborted) await this.#changed.promise;
      }
      if (!signal.aborted) this.#total = index + 1;
    } catch (reason) {
      this.#fail(reason);
    }
    this.#ordersRead = true;
    this.#fill();
    this.#change();
  }

  #fillSoon(): void {
    this.#filling ??= setTimeout(() => this.#fill(), gatherMs);
  }

  #fill(): void {
    clearTimeout(this.#filling);
    this.#filling = undefined;
    while (this.#open < this.#inFlight && !this.#stopped.signal.aborted) {
      const ahead = this.#ahead.take();
      if (!ahead) return;
      this.#enterLane(ahead);
    }
  }

  /** One lane per session: a retried order keeps its place before the orders that follow it. */
  #enterLane(ahead: Ahead): void {
    const { order } = ahead;
    this.#open++;
    const lane = JSON.stringify([order.tenant, order.session ?? "main", order.agent, order.scope]);
    const accepted = (this.#lanes.get(lane) ?? Promise.resolve()).then(() => this.#accept(ahead));
    this.#lanes.set(lane, accepted);
    void accepted.then(() => {
      if (this.#lanes.get(lane) === accepted) this.#lanes.delete(lane);
    });
  }

  async #accept(ahead: Ahead): Promise<void> {
    const { index, order } = ahead;
    const jobId = `${this.#options.id}-${index}`;
    const { signal } = this.#stopped;
    let awaySinceMs: number | undefined;
    const goesOn = (error: unknown) => {
      awaySinceMs = isNoRoom(error) ? undefined : (awaySinceMs ?? performance.now());
      const away = awaySinceMs === undefined ? 0 : performance.now() - awaySinceMs;
      return refusalOf(error) === undefined && passes(error) && away <= outageMs;
    };
    if (signal.aborted) return this.#close();
    try {
      const job = await untilRoom(() => this.#submit({ ...order, id: jobId }), { goesOn, signal });
      if (!job) return this.#close();
      this.#submitted++;
      this.#watch(ahead, job);
    } catch (error) {
      const result = refusalOf(error);
      if (!result) return this.#fail(error);
      this.#submitted++;
      this.#end(ahead, { index, jobId, result });
    }
  }

  #watch(ahead: Ahead, job: EnqueuedJob): void {
    const { index } = ahead;
    this.#running.set(index, job);
    job.result
      .then(
        (result) => this.#end(ahead, { index, jobId: job.id, result }),
        (reason) => this.#fail(reason),
      )
      .finally(() => this.#running.delete(index));
    // The job was submitted while the batch was being cancelled.
    if (this.#stopped.signal.aborted && !this.#left) job.cancel().catch((reason) => this.#fail(reason));
  }

  #end(ahead: Ahead, done: BatchResult): void {
    this.#ahead.ended(ahead);
    this.#finished++;
    this.#ends.add();
    if (!isSuccess(done.result.outcome)) this.#failed++;
    if (!this.#left) this.#ready.push(done);
    this.#change();
  }

  #fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#change();
  }

  #close(): void {
    this.#open--;
    if (this.#filling === undefined) this.#fill();
    this.#change();
  }

  #change(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

/** The result of an invalid order. */
function refusalOf(error: unknown): JobResult | undefined {
  if (!isOrderFault(error)) return undefined;
  const outcome = { kind: "refused", code: error.code, message: error.message } as const;
  return withText({ outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } });
}

function sizeOf(orders: Orders): number | undefined {
  if (Array.isArray(orders)) return orders.length;
  return orders instanceof Set || orders instanceof Map ? orders.size : undefined;
}
