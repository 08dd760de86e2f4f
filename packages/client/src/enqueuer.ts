import { defaultPool, Leases } from "@berth/lease";
import { type Job, type SandboxKey, sandboxKeyOf } from "@berth/protocol";
import { acceptJob, JobQueues, Offers } from "@berth/queue";
import type { Redis } from "@berth/redis";

/**
 * Hands jobs to the fleet: accepted, added to the sandbox's queue, marked, offered. Whoever dies between two of these
 * leaves something the sweep finds or nothing at all; only after the last is a job promised to end.
 */
export class Enqueuer {
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #leases: Leases;
  readonly #offers: Offers;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#queues = new JobQueues(redis);
    this.#leases = new Leases(redis);
    this.#offers = new Offers(redis);
  }

  /** `known`: this attempt of the job was added before, by whomever. */
  async enqueue(job: Job): Promise<"added" | "known"> {
    const key = sandboxKeyOf(job);
    if ((await acceptJob(this.#redis, key, job)) === "known") return "known";
    await this.#queues.add(key, job);
    await this.#mark(key, job);
    return "added";
  }

  async close(): Promise<void> {
    await this.#queues.close();
    await this.#offers.close();
  }

  /** After adding: whoever releases in between sees the job, and whoever looks afterwards sees the mark. */
  async #mark(key: SandboxKey, job: Job): Promise<void> {
    const { id, attempt, pool = defaultPool } = job;
    const lease = await this.#leases.mark(key, { id, attempt, pool });
    if (!lease.live && !lease.paused) await this.#offers.add(key, { pool: lease.pool, home: lease.home });
  }
}
