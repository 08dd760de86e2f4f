import type { JobResult } from "@berth/protocol";
import type { JobOrder } from "./berth.ts";
import type { PendingJob } from "./pending-job.ts";

export interface BatchOptions {
  /** Names the batch: its jobs are `<id>-0`, `<id>-1`, …, so that a second run finds what the first one did. */
  readonly id: string;
  /** Jobs in flight at once; default 1,000. */
  readonly inFlight?: number;
}

export interface BatchResult {
  readonly index: number;
  readonly jobId: string;
  readonly result: JobResult;
}

export interface BatchProgress {
  readonly submitted: number;
  readonly finished: number;
  readonly failed: number;
}

const defaultInFlight = 1_000;

/** Many jobs under one name, submitted as they are asked for and no faster than they end. */
export class Batch {
  readonly #submit: (order: JobOrder) => PendingJob;
  readonly #orders: Iterable<JobOrder> | AsyncIterable<JobOrder>;
  readonly #options: BatchOptions;
  #submitted = 0;
  #finished = 0;
  #failed = 0;

  constructor(
    submit: (order: JobOrder) => PendingJob,
    orders: Iterable<JobOrder> | AsyncIterable<JobOrder>,
    options: BatchOptions,
  ) {
    this.#submit = submit;
    this.#orders = orders;
    this.#options = options;
  }

  progress(): BatchProgress {
    return { submitted: this.#submitted, finished: this.#finished, failed: this.#failed };
  }

  /** Results as the jobs end. Reading them is what submits the next. Once. */
  async *results(): AsyncGenerator<BatchResult> {
    const inFlight = new Map<number, Promise<BatchResult>>();
    const most = this.#options.inFlight ?? defaultInFlight;
    const next = async () => {
      const done = await Promise.race(inFlight.values());
      inFlight.delete(done.index);
      this.#finished++;
      const { outcome } = done.result;
      if (!(outcome.kind === "done" || (outcome.kind === "exited" && outcome.code === 0))) this.#failed++;
      return done;
    };
    for await (const order of this.#orders) {
      if (inFlight.size >= most) yield await next();
      const index = this.#submitted++;
      const jobId = `${this.#options.id}-${index}`;
      const pending = this.#submit({ ...order, id: jobId });
      inFlight.set(
        index,
        pending.then((result) => ({ index, jobId, result })),
      );
    }
    while (inFlight.size > 0) yield await next();
  }
}
