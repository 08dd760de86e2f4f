import type { Job } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type Job as BullJob, UnrecoverableError, Worker } from "bullmq";
import { bullConnection } from "../queues/connection.ts";
import type { MarkerWaits } from "../queues/marker-waits.ts";
import { deadQueue, reasonText, redriveEntry } from "./dead-letters.ts";

export interface DeadLetterWorkerOptions {
  readonly redis: Redis;
  readonly waits: MarkerWaits;
  readonly enqueue: (job: Job) => Promise<unknown>;
  readonly lockMs?: number;
}

const defaultLockMs = 5_000;
const reconnectMs = 250;

/**
 * Turns new letters into failed jobs, and enqueues again what a user retried in a dashboard. The entry shows which of the two it is:
 * BullMQ records the failure in the step that fails it, so that no letter runs again by accident.
 */
export class DeadLetterWorker {
  readonly #options: DeadLetterWorkerOptions;
  readonly #worker: Worker;

  constructor(options: DeadLetterWorkerOptions) {
    this.#options = options;
    const lockMs = options.lockMs ?? defaultLockMs;
    const ofWorker = {
      connection: bullConnection(options.redis),
      prefix: deadQueue.prefix,
      autorun: false,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: reconnectMs,
    };
    const pass = (entry: BullJob) => this.#pass(entry);
    this.#worker = new Worker(deadQueue.name, pass, ofWorker, options.waits.backend);
    this.#worker.on("error", () => {});
  }

  start(): void {
    void this.#worker.run();
  }

  async stop(): Promise<void> {
    await this.#worker.close();
  }

  async #pass(entry: BullJob): Promise<void> {
    // A dashboard may reset the attempts. The stack trace of the first failure stays.
    const isListed = entry.attemptsMade > 0 || (entry.stacktrace?.length ?? 0) > 0;
    if (!isListed) throw new UnrecoverableError(reasonText(entry.data));
    await redriveEntry(this.#options.redis, entry, this.#options.enqueue);
  }
}
