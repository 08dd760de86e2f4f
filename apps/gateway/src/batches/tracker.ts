import { setTimeout as sleep } from "node:timers/promises";
import type { Berth, GroupResult, ResultGroup } from "@berth/client";
import { type BatchStore, batchJobId, batchOf, type StoredBatch } from "@berth/ledger";
import { isSuccess, type JobResult } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Logger } from "pino";
import { InOrder } from "./in-order.ts";

export interface TrackerParts {
  readonly redis: Redis;
  readonly berth: Berth;
  readonly batches: BatchStore;
  readonly log: Logger;
  /** This gateway among those that read results. The same after a restart, so that it goes on with what it had. */
  readonly consumer: string;
  /** Called with every result this gateway reads, of a batch or not. */
  readonly onResult: (result: GroupResult) => void;
}

const lookEveryMs = 2_000;
/** Minimum time between two sweeps of one batch, over all gateways. */
const lookAgainMs = 15_000;
const batchesPerLook = 10;
const indexesPerLook = 2_000;
/** An upload that made no progress for this long counts as disconnected. */
const uploadGoneMs = 30_000;
/** After this long the sender cannot resume, since Redis forgets its jobs. The batch ends with the orders it has. */
const uploadLeftMs = 24 * 3_600_000;
/** On a cluster the indexes may get a job a moment after it was accepted. A record is kept for a day. */
const indexedMs = 60_000;
const retryMs = 1_000;
const cancelledAtOnce = 32;

/**
 * Records the ends of batch jobs; all gateways share the work. Nearly all ends come from the result stream. If Redis trimmed the
 * stream before a gateway read it, a sweep finds the rest in the job records.
 */
export class BatchTracker {
  readonly #parts: TrackerParts;
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];
  #group: ResultGroup | undefined;

  constructor(parts: TrackerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#loops.push(this.#follow(), this.#look());
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#group?.close();
    await Promise.all(this.#loops);
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const { berth, consumer } = this.#parts;
        this.#group = berth.results("gateway", { consumer, from: "now" });
        const work = new InOrder(32);
        for await (const result of this.#group) await work.add(result.jobId, () => this.#take(result));
        await work.finish();
      } catch (error) {
        if (signal.aborted) return;
        this.#parts.log.warn({ event: "batches.results-lost", err: error });
        await this.#group?.close();
        await sleep(retryMs, undefined, { signal }).catch(() => {});
      }
    }
  }

  async #take(result: GroupResult): Promise<void> {
    this.#parts.onResult(result);
    const of = batchOf(result.jobId);
    if (of) await this.#noteEnd(of.id, of.index, result.key, result.result);
    await result.ack();
  }

  async #noteEnd(id: string, index: number, key: string, result: JobResult): Promise<void> {
    const failed = !isSuccess(result.outcome);
    const answer = await this.#parts.batches.noteEnd(id, { index, key, failed });
    if (answer === "over") this.#parts.log.info({ event: "batch.finished", batch: id });
  }

  async #look(): Promise<void> {
    const { batches, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await sleep(lookEveryMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      try {
        const due = await batches.claimOpen({ holdMs: lookAgainMs, limit: batchesPerLook });
        for (const id of due) {
          const batch = await batches.get(id);
          if (batch) await this.#lookAt(batch);
          else await batches.dropOpen(id);
        }
      } catch (error) {
        log.warn({ event: "batches.look-failed", err: error });
      }
    }
  }

  async #lookAt(batch: StoredBatch): Promise<void> {
    const { batches } = this.#parts;
    await batches.touch(batch.id);
    const quietMs = Date.now() - Math.max(batch.uploadAtMs, batch.createdAtMs);
    if (batch.state === "cancelling") {
      const left = batch.total === undefined && quietMs > uploadGoneMs;
      if (left) await batches.noteUploaded(batch.id, batch.submitted);
      if (left || batch.total !== undefined) await this.#cancelSome(batch);
    } else if (batch.state === "uploading" && quietMs > uploadLeftMs)
      await batches.noteUploaded(batch.id, batch.submitted);
    if (batch.total !== undefined) await this.#findMissed(batch, batch.total);
  }

  /** Sweeps in steps and stores the position, so that another gateway can continue. */
  async #cancelSome(batch: StoredBatch): Promise<void> {
    const { batches, berth } = this.#parts;
    const { id, total = batch.submitted } = batch;
    for (
      let from = batch.cancelledTo;
      from < total && !this.#stopping.signal.aborted;
      from += indexesPerLook
    ) {
      const some = Math.min(indexesPerLook, total - from);
      const work = new InOrder(cancelledAtOnce);
      for (const index of await batches.notEnded(id, from, some))
        await work.add(String(index), async () => void (await berth.cancel(batchJobId(id, index))));
      await work.finish();
      await batches.noteCancelledTo(id, from + some);
      await batches.holdOpen(id, lookAgainMs);
    }
  }

  /** Looks up jobs whose end is overdue: their records hold it, or they are lost. */
  async #findMissed(batch: StoredBatch, total: number): Promise<void> {
    const { id } = batch;
    const { batches, berth } = this.#parts;
    const from = await batches.firstNotEnded(id);
    if (from >= total) return batches.noteUploaded(id, total);
    const open = await batches.notEnded(id, from, Math.min(indexesPerLook, total - from));
    if (open.length === 0) return;
    const unfinished = await berth.jobs.areUnfinished(open.map((index) => batchJobId(id, index)));
    for (const [at, index] of open.entries()) {
      if (!unfinished[at]) await this.#noteMissed(batch, index);
    }
  }

  async #noteMissed({ id, uploadAtMs }: StoredBatch, index: number): Promise<void> {
    const { batches, berth } = this.#parts;
    const job = await berth.jobs.find(batchJobId(id, index));
    if (!job && Date.now() - uploadAtMs < indexedMs) return;
    if (!job) return batches.noteRefused(id, index, "the job's record has expired");
    if (job.result) await this.#noteEnd(id, index, job.sandbox, job.result);
  }
}
