import { type Batch, type Berth, shownState } from "@berth/client";
import { isSuccess } from "@berth/protocol";
import type { BatchesDoor, BatchToRun, DoorBatch } from "../door.ts";
import { batchJobs } from "./client-batch-jobs.ts";

/** Batches without a gateway: this process submits the jobs, no faster than they end. */
export function clientBatches(berth: Berth): BatchesDoor {
  return {
    run: async (given) => runHere(berth, given),
    async status(id) {
      const count = { submitted: 0, waiting: 0, running: 0, finished: 0, failed: 0 };
      for await (const { result, state } of batchJobs((job) => berth.jobs.find(job), id)) {
        count.submitted++;
        const shown = shownState(state);
        if (shown === "running") count.running++;
        else if (shown !== "finished") count.waiting++;
        else {
          count.finished++;
          if (!result || !isSuccess(result.outcome)) count.failed++;
        }
      }
      return count.submitted === 0 ? undefined : count;
    },
    async cancel(id) {
      const count = { known: 0, cancelled: 0 };
      for await (const { id: jobId, state } of batchJobs((job) => berth.jobs.find(job), id)) {
        count.known++;
        if (state === "finished") continue;
        await berth.cancel(jobId);
        count.cancelled++;
      }
      return count.known === 0 ? undefined : count;
    },
  };
}

function runHere(berth: Berth, { id, orders, total, inFlight }: BatchToRun): DoorBatch {
  let batch: Batch | undefined;
  let left = false;
  let cancelled = false;
  return {
    prefix: id,
    get cancelled() {
      return cancelled;
    },
    async *ends(done) {
      const options = { id, total, done, ...(inFlight === undefined ? {} : { inFlight }) };
      if (left || cancelled) return;
      batch = berth.batch(orders, options);
      for await (const { index, jobId, result } of batch.results())
        yield { position: index, id: jobId, result };
    },
    async cancel() {
      cancelled = true;
      await batch?.cancel();
    },
    leave() {
      left = true;
      batch?.leave();
    },
  };
}
