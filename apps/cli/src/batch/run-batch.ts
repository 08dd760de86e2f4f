import { Batch } from "@berth/client";
import { isSuccess, type JobResult } from "@berth/protocol";
import type { Complaint } from "../complaint.ts";
import type { Door, JobOrder } from "../door.ts";
import type { BatchLine } from "./batch-file.ts";
import { enqueuedBy } from "./enqueued-by.ts";

export interface BatchRun {
  readonly door: Door;
  readonly id: string;
  readonly lines: AsyncIterable<BatchLine>;
  /** Orders whose results are there already. */
  readonly done: ReadonlySet<number>;
  readonly inFlight: number;
  readonly stop: AbortSignal;
}

export interface BatchEnd {
  readonly index: number;
  readonly id: string;
  readonly result: JobResult;
}

/**
 * The ends of a batch's jobs as they come. Each job's id is made of the batch's and the line's, so that the same batch again
 * runs nothing twice. When told to stop, it submits nothing more; what was submitted goes on.
 */
export async function* runBatch({
  door,
  id,
  lines,
  done,
  inFlight,
  stop,
}: BatchRun): AsyncGenerator<BatchEnd> {
  // The batch counts what it is given; the lines that are left out would shift the numbers.
  const given: BatchLine[] = [];
  let taken = 0;
  const fatal = Promise.withResolvers<never>();
  fatal.promise.catch(() => {});
  async function* orders(): AsyncGenerator<JobOrder> {
    for await (const line of lines) {
      if (stop.aborted) return;
      if (done.has(line.index)) continue;
      given[taken++] = line;
      yield line.order;
    }
  }
  const submit = (order: JobOrder) => {
    const line = given[Number(order.id?.split("-").at(-1))] as BatchLine;
    const onFatal = (error: Complaint) => fatal.reject(error);
    return enqueuedBy(door, line.key, { ...order, id: `${id}-${line.index}` }, onFatal);
  };
  const batch = new Batch(submit, orders(), { id, inFlight });
  const results = batch.results();
  const stopped = new Promise<undefined>((resolve) => {
    if (stop.aborted) resolve(undefined);
    stop.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    for (;;) {
      const next = results.next();
      next.catch(() => {});
      const got = await Promise.race([next, fatal.promise, stopped]);
      if (got === undefined || got.done) return;
      const line = given[got.value.index] as BatchLine;
      delete given[got.value.index];
      yield { index: line.index, id: `${id}-${line.index}`, result: got.value.result };
    }
  } finally {
    batch.leave();
  }
}

export function isFailure({ result }: BatchEnd): boolean {
  return !isSuccess(result.outcome);
}
