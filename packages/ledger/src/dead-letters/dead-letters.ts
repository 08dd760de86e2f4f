import {
  deadReason,
  fleetQueuePrefix,
  type Job,
  outcome,
  redisKeys,
  sandboxKey,
  stagedAboveBytes,
  type TenantId,
  tenantOf,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type Job as BullJob, Queue } from "bullmq";
import { z } from "zod";
import { readCeilings } from "../fleet/tenant-ceilings.ts";
import { notRedrivable, redrivenJob } from "../jobs/redrive.ts";
import { bullConnection } from "../queues/connection.ts";

export const deadQueue = { name: "dead", prefix: fleetQueuePrefix } as const;
/** Seconds, and how many; older or further letters are removed automatically. */
const deadKept = { age: 7 * 24 * 3_600, count: 100_000 };
const bullEventsKept = 1_000;

const letter = z.object({
  jobId: z.string(),
  sandboxKey: z.string(),
  reason: deadReason,
  outcome,
  atMs: z.number(),
  worker: z.string(),
  /** As it was found, not validated. */
  job: z.unknown(),
  /** The new job's id, chosen before it is enqueued: a repeated re-drive enqueues it once. */
  redriveAs: z.string().optional(),
});
export type NewDeadLetter = Omit<z.infer<typeof letter>, "redriveAs">;

/** A job that ended in a way that an operator should see. */
export interface DeadLetter extends NewDeadLetter {
  /** Where a list goes on after this one. */
  readonly cursor: string;
}

/**
 * Jobs that ended badly, kept to be looked at and run again.
 *
 *   waiting ──first pass of a worker──▶ failed ──retried, here or in a dashboard──▶ enqueued again, then gone
 *                                          └──seven days, a hundred thousand newer, its tenant's ceiling, remove()──▶ gone
 *
 * They are kept as failed jobs, so that any dashboard for BullMQ shows the reason and its retry button re-drives. The
 * terminal record stays as it was published: what runs again is another job, with an id of its own.
 */
export class DeadLetters {
  readonly #redis: Redis;
  readonly #queue: Queue;
  readonly #kept: typeof deadKept;

  constructor(redis: Redis, kept = deadKept) {
    this.#redis = redis;
    this.#kept = kept;
    const { name, prefix } = deadQueue;
    const streams = { events: { maxLen: bullEventsKept } };
    this.#queue = new Queue(name, { connection: bullConnection(redis), prefix, streams });
    this.#queue.on("error", () => {});
  }

  /** Replaces an earlier letter of the same job. */
  async add(added: NewDeadLetter): Promise<void> {
    const known = await this.#queue.getJob(letterId(added.jobId));
    await known?.remove();
    await this.#queue.add(added.reason, slim(added), {
      jobId: letterId(added.jobId),
      attempts: 1,
      stackTraceLimit: 1,
      removeOnComplete: true,
      removeOnFail: this.#kept,
    });
    const key = sandboxKey.safeParse(added.sandboxKey);
    if (key.success) await this.#dropOldest(tenantOf(key.data), added.jobId);
  }

  /** Removes a tenant's oldest letters beyond its ceiling. Other tenants' letters stay. */
  async #dropOldest(tenant: TenantId, newest: string): Promise<void> {
    const index = redisKeys.deadOf(tenant);
    const now = Date.now();
    const { deadLetters: most } = await readCeilings(this.#redis, tenant);
    await this.#redis.zadd(index, now, newest);
    await this.#redis.zremrangebyscore(index, "-inf", now - this.#kept.age * 1_000);
    await this.#redis.expire(index, this.#kept.age);
    const over = most === 0 ? 0 : (await this.#redis.zcard(index)) - most;
    if (over <= 0) return;
    for (const id of await this.#redis.zrange(index, "0", String(over - 1))) {
      await this.#queue.remove(letterId(id));
      await this.#redis.zrem(index, id);
    }
  }

  /** Newest first, after a letter's cursor. */
  async list({ limit = 100, after }: { limit?: number; after?: string } = {}): Promise<DeadLetter[]> {
    const failed = this.#queue.toKey("failed");
    const [, at = "+inf", id = ""] = /^(\d+)\.(.*)$/.exec(after ?? "") ?? [];
    // Letters of the same millisecond are ordered by id.
    const same = at === "+inf" ? 0 : await this.#redis.zcount(failed, at, at);
    const page = await this.#redis.zrevrangebyscore(
      failed,
      at,
      "-inf",
      "WITHSCORES",
      "LIMIT",
      0,
      limit + same,
    );
    const found = Array.from({ length: page.length / 2 }, (_, index) => ({
      id: page[index * 2] ?? "",
      at: page[index * 2 + 1] ?? "",
    })).filter((one) => !(one.at === at && one.id >= id));
    const letters = await Promise.all(
      found.slice(0, limit).map(async (one) => {
        const data = letter.safeParse((await this.#queue.getJob(one.id))?.data);
        return data.success ? [{ ...data.data, cursor: `${one.at}.${one.id}` }] : [];
      }),
    );
    return letters.flat();
  }

  count(): Promise<number> {
    return this.#queue.getFailedCount();
  }

  /** Enqueues the job again under a new id, and returns that id. */
  async redrive(id: string, enqueue: (job: Job) => Promise<unknown>): Promise<string> {
    const entry = await this.#queue.getJob(letterId(id));
    if (!entry) throw notRedrivable("not-found", id, `there is no dead letter of the job ${id}`);
    const newId = await redriveEntry(this.#redis, entry, enqueue);
    await this.#queue.remove(letterId(id));
    await this.#unlist(entry, id);
    return newId;
  }

  /** False: there is none. */
  async remove(id: string): Promise<boolean> {
    const entry = await this.#queue.getJob(letterId(id));
    await entry?.remove();
    if (entry) await this.#unlist(entry, id);
    return entry !== undefined;
  }

  async #unlist(entry: BullJob, id: string): Promise<void> {
    const key = sandboxKey.safeParse(entry.data?.sandboxKey);
    if (key.success) await this.#redis.zrem(redisKeys.deadOf(tenantOf(key.data)), id);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

/** Chooses an id and keeps it with the letter before anything is enqueued. */
export async function redriveEntry(
  redis: Redis,
  entry: BullJob,
  enqueue: (job: Job) => Promise<unknown>,
): Promise<string> {
  const data = letter.parse(entry.data);
  const job = await redrivenJob(redis, data.jobId, data.job, data.redriveAs);
  if (data.redriveAs === undefined) await entry.updateData({ ...data, redriveAs: job.id });
  await enqueue(job);
  return job.id;
}

/** As a sentence, for a dashboard. */
export function reasonText(data: unknown): string {
  const parsed = letter.safeParse(data);
  if (!parsed.success) return "it cannot be read";
  const { reason: why, outcome: how } = parsed.data;
  const more = "message" in how ? `: ${how.message}` : "code" in how ? ` with code ${how.code}` : "";
  return `${why}: ${how.kind}${more}`;
}

/** A request that was too large for a queue is not kept: seven days of them would fill Redis. */
function slim(added: NewDeadLetter): NewDeadLetter {
  const { job } = added;
  const large = Buffer.byteLength(JSON.stringify(job ?? null)) > stagedAboveBytes;
  return large && typeof job === "object" ? { ...added, job: { ...job, request: undefined } } : added;
}

/** Prefixed, because BullMQ refuses an id of digits only, and an unreadable job may have one. */
function letterId(id: string): string {
  return `d-${id.replaceAll(":", "_")}`;
}
