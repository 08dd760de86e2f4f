import { setTimeout as sleep } from "node:timers/promises";
import { queuePrefix, redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { type Job as BullJob, Queue, Worker } from "bullmq";
import { z } from "zod";
import { bullConnection } from "./connection.ts";
import { attemptOf, jobIdOf, jobQueueName } from "./job-queues.ts";
import { OneWait } from "./one-wait.ts";

/** The lease decides who may work on a job. A lock that lapsed would only leave a finished job stuck as active. */
const lockMs = 7 * 24 * 3_600_000;
/** BullMQ's own shortest wait. */
const shortestWaitSeconds = 0.05;
/** After an error BullMQ would rest for 5 s and then wait for 10 s, which is longer than a short lease. */
const restMs = 250;

const own = new Script({
  name: "own",
  file: new URL("../../lua/own.lua", import.meta.url),
  parse: (reply) => z.union([z.literal(0), z.literal(1)]).parse(reply) === 1,
});

/** A job of the sandbox's queue that is ours to work on. */
export interface HeldJob {
  readonly id: string;
  /** Another for each attempt. */
  readonly queuedId: string;
  readonly attempt: number;
  /** Epoch milliseconds, by the clock of whoever added it. */
  readonly queuedAtMs: number;
  /** As it was found: not checked yet. */
  load(): Promise<unknown>;
  complete(): Promise<void>;
}

/**
 * Takes jobs from one sandbox's queue, for whoever holds its lease. BullMQ's own loop, stalled checks and lock renewal are
 * off: order within sessions, and what becomes of a dead holder's jobs, are the tenancy's to decide.
 */
export class JobSource {
  readonly #worker: Worker;
  readonly #queue: Queue;
  readonly #redis: Redis;
  readonly #key: SandboxKey;
  readonly #holder: { readonly instance: string; readonly epoch: number };
  readonly #token: string;
  readonly #lockPrefix: string;
  readonly #wait = new OneWait();

  constructor(redis: Redis, key: SandboxKey, holder: { readonly instance: string; readonly epoch: number }) {
    const shared = { prefix: queuePrefix(key), connection: bullConnection(redis) };
    this.#redis = redis;
    this.#key = key;
    this.#holder = holder;
    this.#token = `${holder.instance}-${holder.epoch}`;
    this.#lockPrefix = `${queuePrefix(key)}:${jobQueueName}`;
    // The producer sets how many BullMQ events are kept; without this option BullMQ would reset that to 10,000.
    this.#queue = new Queue(jobQueueName, { ...shared, skipMetasUpdate: true });
    this.#worker = new Worker(jobQueueName, undefined, {
      ...shared,
      autorun: false,
      skipStalledCheck: true,
      skipLockRenewal: true,
      lockDuration: lockMs,
      removeOnComplete: { age: 3_600, count: 100 },
      removeOnFail: { age: 3_600, count: 100 },
    });
    this.#worker.delay = () => sleep(restMs);
    // Connection errors are told by the connection itself, once per outage.
    this.#worker.on("error", () => {});
    this.#queue.on("error", () => {});
  }

  /** The next job, or undefined when none came for about so long. One call at a time. */
  async next(waitMs: number): Promise<HeldJob | undefined> {
    this.#worker.opts.drainDelay = Math.max(shortestWaitSeconds, waitMs / 1_000);
    // Infinity after an error. Nothing is ever delayed in a sandbox's queue, so there is never a time to wait for.
    (this.#worker as unknown as { blockUntil: number }).blockUntil = 0;
    const job = await this.#wait.for(() => this.#worker.getNextJob(this.#token));
    return job && this.#held(job);
  }

  /** What is taken from the queue, by whomever, the first taken first: in the list's order, since workers' clocks differ. */
  async active(): Promise<HeldJob[]> {
    const jobs = await this.#queue.getActive();
    return jobs.filter((job) => job !== undefined).map((job) => this.#held(job, true));
  }

  /** Makes a `next` that waits look again, and return. */
  async wake(): Promise<void> {
    // What BullMQ itself puts there when a job is added: a hint, not a job.
    await this.#redis.zadd(`${this.#lockPrefix}:marker`, 0, "0");
  }

  async close(): Promise<void> {
    this.#wait.end();
    await this.#worker.close(true);
    await this.#queue.close();
  }

  #held(job: BullJob, foreignLock = false): HeldJob {
    return {
      id: jobIdOf(job.id ?? ""),
      queuedId: job.id ?? "",
      attempt: attemptOf(job.id ?? ""),
      queuedAtMs: job.timestamp,
      load: async () => job.data,
      complete: async () => {
        if (foreignLock) await this.#own(job);
        await job.moveToCompleted("done", this.#token, false);
      },
    };
  }

  async #own({ id }: BullJob): Promise<void> {
    const entry = `${this.#lockPrefix}:${id}`;
    const keys = [redisKeys.lease(this.#key), `${entry}:lock`, entry];
    const { epoch, instance } = this.#holder;
    const owned = await own.run(this.#redis, keys, [epoch, instance, this.#token, lockMs]);
    if (!owned) throw new Error(`epoch ${epoch} no longer holds ${this.#key}`);
  }
}
