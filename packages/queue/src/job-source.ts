import { queuePrefix, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type Job as BullJob, Queue, Worker } from "bullmq";
import { bullConnection } from "./connection.ts";
import { jobIdOf, jobQueueName } from "./job-queues.ts";

/** The lease decides who may work on a job. A lock that lapsed would only leave a finished job stuck as active. */
const lockMs = 7 * 24 * 3_600_000;
/** How long one call waits for a job. */
const waitSeconds = 1;

/** A job of the sandbox's queue that is ours to work on. */
export interface HeldJob {
  readonly id: string;
  /** As it was found: not checked yet. */
  load(): Promise<unknown>;
  complete(): Promise<void>;
  /** Back to the front of the line. */
  putBack(): Promise<void>;
}

/**
 * Takes jobs from one sandbox's queue, for whoever holds its lease. BullMQ's own loop, stalled checks and lock renewal are
 * off: order within sessions, and what becomes of a dead holder's jobs, are the tenancy's to decide.
 */
export class JobSource {
  readonly #worker: Worker;
  readonly #queue: Queue;
  readonly #redis: Redis;
  readonly #token: string;
  readonly #lockPrefix: string;

  constructor(redis: Redis, key: SandboxKey, token: string) {
    const shared = { prefix: queuePrefix(key), connection: bullConnection(redis) };
    this.#redis = redis;
    this.#token = token;
    this.#lockPrefix = `${queuePrefix(key)}:${jobQueueName}`;
    this.#queue = new Queue(jobQueueName, shared);
    this.#worker = new Worker(jobQueueName, undefined, {
      ...shared,
      autorun: false,
      skipStalledCheck: true,
      skipLockRenewal: true,
      lockDuration: lockMs,
      drainDelay: waitSeconds,
      removeOnComplete: { age: 3_600, count: 100 },
      removeOnFail: { age: 3_600, count: 100 },
    });
    // Connection errors are told by the connection itself, once per outage.
    this.#worker.on("error", () => {});
    this.#queue.on("error", () => {});
  }

  /** The next job, or undefined when none came within about a second. */
  async next(): Promise<HeldJob | undefined> {
    const job = await this.#worker.getNextJob(this.#token);
    return job && this.#held(job);
  }

  /** What a dead holder had taken, the first in line first. */
  async active(): Promise<HeldJob[]> {
    const jobs = await this.#queue.getActive();
    return jobs
      .filter((job) => job !== undefined)
      .sort((a, b) => (a.processedOn ?? 0) - (b.processedOn ?? 0) || a.timestamp - b.timestamp)
      .map((job) => this.#held(job, true));
  }

  /** Makes a `next` that waits look again, and return. */
  async wake(): Promise<void> {
    // What BullMQ itself puts there when a job is added: a hint, not a job.
    await this.#redis.zadd(`${this.#lockPrefix}:marker`, 0, "0");
  }

  async close(): Promise<void> {
    await this.#worker.close(true);
    await this.#queue.close();
  }

  #held(job: BullJob, foreignLock = false): HeldJob {
    const own = async () => {
      if (!foreignLock) return;
      await this.#redis.set(`${this.#lockPrefix}:${job.id}:lock`, this.#token, "PX", lockMs);
    };
    return {
      id: jobIdOf(job.id ?? ""),
      load: async () => job.data,
      complete: async () => {
        await own();
        await job.moveToCompleted("done", this.#token, false);
      },
      putBack: async () => {
        await own();
        await job.moveToWait(this.#token);
      },
    };
  }
}
