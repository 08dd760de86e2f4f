import { Leases } from "@berth/lease";
import {
  type Job,
  type JobInput,
  type JobResult,
  job as jobSchema,
  problemsOf,
  redisKeys,
  type SandboxKey,
  sandboxKeyOf,
  tenantId,
} from "@berth/protocol";
import { JobQueues, Offers } from "@berth/queue";
import { connectRedis, type Redis } from "@berth/redis";
import { JobEvents } from "@berth/streams";
import { nanoid } from "nanoid";
import { Batch, type BatchOptions } from "./batch.ts";
import { Inbox } from "./inbox.ts";
import { type EnqueuedJob, type IdentifiedEvent, PendingJob } from "./pending-job.ts";
import { Tenant } from "./tenant.ts";

export interface BerthOptions {
  /** `redis://…`, `rediss://…` or `unix:///path`. */
  readonly redis: string;
}

/** What a caller says of a job; the rest is filled in. */
export type JobOrder = Omit<JobInput, "version" | "id" | "inbox"> & { readonly id?: string };

/** Refused before it reached the queue, with every problem named. */
export class InvalidJob extends Error {
  override readonly name = "InvalidJob";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`invalid job: ${problems.join("; ")}`);
    this.problems = problems;
  }
}

/** How long a wish to cancel is remembered. */
const cancelKeptSeconds = 24 * 3_600;
/** Looks at a stream that nobody tells this client about: from often to less often. */
const lookMs = { first: 20, last: 250 } as const;

/** The fleet, for an orchestrator. Two connections, however many jobs are in flight. */
export class Berth {
  readonly #redis: Redis;
  readonly #queues: JobQueues;
  readonly #offers: Offers;
  readonly #leases: Leases;
  readonly #events: JobEvents;
  readonly #inbox: Inbox;
  #closed = false;

  constructor({ redis }: BerthOptions) {
    this.#redis = connectRedis({ url: redis, role: "commands" });
    this.#queues = new JobQueues(this.#redis);
    this.#offers = new Offers(this.#redis);
    this.#leases = new Leases(this.#redis);
    this.#events = new JobEvents(this.#redis);
    this.#inbox = new Inbox(connectRedis({ url: redis, role: "blocking" }), nanoid());
  }

  tenant(id: string): Tenant {
    return new Tenant(this, tenantId.parse(id));
  }

  /** Hands a job to the fleet. The same id is run once: a second order gets the first one's result. */
  submit(order: JobOrder): PendingJob {
    return new PendingJob(this.#enqueue(order));
  }

  /** Many jobs under one name. Submitting the same name again continues where it was. */
  batch(orders: Iterable<JobOrder> | AsyncIterable<JobOrder>, options: BatchOptions): Batch {
    return new Batch((order) => this.submit(order), orders, options);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#inbox.close();
    await this.#queues.close();
    await this.#offers.close();
    this.#redis.disconnect();
  }

  async #enqueue(order: JobOrder): Promise<EnqueuedJob> {
    const parsed = jobSchema.safeParse({
      ...order,
      version: 1,
      id: order.id ?? nanoid(),
      inbox: this.#inbox.name,
    });
    if (!parsed.success) {
      throw new InvalidJob(problemsOf(parsed.error));
    }
    const job = parsed.data;
    const key = sandboxKeyOf(job);
    const result = this.#resultOf(key, job, order.id !== undefined);
    result.catch(() => {});
    try {
      await this.#add(key, job);
    } catch (error) {
      this.#inbox.forget(job.id);
      throw error;
    }
    return {
      id: job.id,
      key,
      result,
      cancel: () => this.#cancel(key, job.id),
      events: (after = "") => this.#follow(key, job.id, after),
    };
  }

  /** Added, then marked: whoever releases in between sees the job, and whoever looks afterwards sees the mark. */
  async #add(key: SandboxKey, job: Job): Promise<void> {
    await this.#queues.add(key, job);
    const lease = await this.#leases.markPending(key);
    if (!lease.live) await this.#offers.add(key);
  }

  #resultOf(key: SandboxKey, job: Job, idWasGiven: boolean): Promise<JobResult> {
    const told = new Promise<JobResult>((resolve) => this.#inbox.expect(job.id, resolve));
    if (!idWasGiven) return told;
    // Somebody else may have enqueued it, and only their inbox is told.
    return Promise.race([told, this.#lookedUp(key, job.id, told)]);
  }

  async #lookedUp(key: SandboxKey, jobId: string, told: Promise<unknown>): Promise<JobResult> {
    let over = false;
    void told.then(() => {
      over = true;
    });
    for (let pause: number = lookMs.first; !over && !this.#closed; pause = Math.min(pause * 2, lookMs.last)) {
      const progress = await this.#events.progress(key, jobId).catch(() => undefined);
      if (progress?.state === "finished") {
        this.#inbox.forget(jobId);
        return progress.result;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return new Promise(() => {});
  }

  async *#follow(key: SandboxKey, jobId: string, after: string): AsyncGenerator<IdentifiedEvent> {
    let last = after;
    let pause: number = lookMs.first;
    while (!this.#closed) {
      const entries = await this.#events.read(key, jobId, last);
      for (const { id, event } of entries) {
        last = id;
        yield { id, ...event };
        if (event.type === "finished") return;
      }
      pause = entries.length > 0 ? lookMs.first : Math.min(pause * 2, lookMs.last);
      if (entries.length === 0) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #cancel(key: SandboxKey, jobId: string): Promise<void> {
    await this.#redis.sadd(redisKeys.cancelled(key), jobId);
    await this.#redis.expire(redisKeys.cancelled(key), cancelKeptSeconds);
    await this.#redis.publish(redisKeys.cancellations(key), jobId);
  }
}
