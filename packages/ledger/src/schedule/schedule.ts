import {
  Fault,
  fleetQueuePrefix,
  type Job,
  type Labels,
  latestDueMs,
  redisKeys,
  type SandboxKey,
  sandboxKeyOf,
  stagedAboveBytes,
  tenantOf,
} from "@berth/protocol";
import { orRedisFull, type Redis, Replicated, Script } from "@berth/redis";
import { type Job as BullJob, Queue } from "bullmq";
import { readAttempts } from "../jobs/job-record.ts";
import { acceptJob, defaultWaitingLimits } from "../queues/admission.ts";
import { bullConnection } from "../queues/connection.ts";
import type { StagedPayload } from "../queues/submit.ts";
import { type DueJob, DueOrder } from "./due-order.ts";

export const scheduleQueue = { name: "schedule", prefix: fleetQueuePrefix } as const;

const confirm = new Script({
  name: "confirm",
  file: new URL("../../lua/confirm.lua", import.meta.url),
  parse: (reply) => reply === 1,
});

/** Only a dashboard reads it. */
const bullEventsKept = 1_000;
/** BullMQ retries an entry until it is handed on. */
const tries = 1_000_000_000;
/** How long a delayed job's acceptance is kept past its due time, in case no worker runs. */
const knownPastDueMs = 24 * 3_600_000;

/** Storage for requests that are too large for the schedule. */
export interface StagingPort {
  put(key: SandboxKey, job: Job, options: { readonly isAccepted: boolean }): Promise<StagedPayload>;
  accept(key: SandboxKey, jobId: string): Promise<void>;
  take(key: SandboxKey, jobId: string, staged: StagedPayload): Promise<unknown>;
}

/** A job that waits for its time. */
export interface ScheduledJob {
  readonly jobId: string;
  readonly attempt: number;
  readonly dueAtMs: number;
  /** The client whose inbox gets its end. */
  readonly inbox: string | undefined;
  readonly labels: Labels | undefined;
  /** How often handing it on failed, and why the last time. */
  readonly failures: number;
  readonly problem: string | undefined;
}

/**
 * Delayed jobs, retries and the ticks of schedules, until they are due. One queue for the whole fleet, since a sandbox's own queue may have
 * no worker. Any worker hands on due entries.
 *
 *   delayed ──due──▶ waiting ──taken by a worker──▶ handed on, then gone
 *      ▲                                  └──its worker died──▶ waiting
 *      └────────────── could not be handed on ──┘
 */
export class Schedule {
  readonly #redis: Redis;
  readonly #staging: StagingPort;
  readonly #order: DueOrder;
  readonly #queue: Queue;
  readonly #most: number;

  /** `most`: how many jobs may be in it. */
  constructor(redis: Redis, staging: StagingPort, most: number = defaultWaitingLimits.inFleet) {
    this.#most = most;
    this.#redis = redis;
    this.#order = new DueOrder(redis);
    this.#staging = staging;
    const { name, prefix } = scheduleQueue;
    const streams = { events: { maxLen: bullEventsKept } };
    this.#queue = new Queue(name, { connection: bullConnection(redis), prefix, streams });
    this.#queue.on("error", () => {});
  }

  /** Accepts a delayed job: from now on it has a record, and will run. `known`: it was added or has run before. */
  async accept(job: Job, dueAtMs: number): Promise<"added" | "known"> {
    const key = sandboxKeyOf(job);
    const knownUntilMs = Math.round(dueAtMs) + knownPastDueMs;
    const waiting = await this.#queue.getDelayedCount();
    const limit = this.#most;
    // Checked before the acceptance, so that a refused job is not counted.
    if (waiting >= limit && (await this.#redis.exists(redisKeys.job(key, job.id))) === 0)
      throw new Fault("fleet-full", { waiting, limit });
    const accepted = await acceptJob(this.#redis, key, job);
    if (accepted === "known") return "known";
    for (const record of [redisKeys.sandboxOf(job.id), redisKeys.job(key, job.id)])
      await this.#redis.pexpireat(record, knownUntilMs);
    await this.#order.note(key, job.id, dueAtMs, knownUntilMs);
    await this.add(job, dueAtMs);
    // Only now: if the producer dies before this, the job counts for its tenant only as long as an acceptance.
    const counted = redisKeys.delayedOf(tenantOf(key), job.tenant);
    await this.#redis.zadd(counted, "XX", "GT", knownUntilMs, `${job.id} ${accepted.bytes}`).catch(() => {});
    return "added";
  }

  /** The sandbox's job to hand on first among those due by `dueByMs`. Undefined data: it is no longer in the schedule. */
  async firstDue(
    key: SandboxKey,
    dueByMs: number,
  ): Promise<(DueJob & { readonly data: unknown }) | undefined> {
    const first = await this.#order.first(key, dueByMs);
    if (first === undefined) return undefined;
    const entry: BullJob | undefined = await this.#queue.getJob(entryId(first.jobId, 1));
    return { ...first, data: entry?.data };
  }

  /** Schedules this attempt of the job. Adding the same attempt again changes nothing. */
  async add(job: Job, dueAtMs: number): Promise<void> {
    const key = sandboxKeyOf(job);
    const large = Buffer.byteLength(JSON.stringify(job.request)) > stagedAboveBytes;
    const staged = large ? await this.#staging.put(key, job, { isAccepted: true }) : undefined;
    const payload = staged ? { ...job, request: undefined, staged } : job;
    await this.#add(entryId(job.id, job.attempt), job.request.kind, { job: payload, dueAtMs }, dueAtMs);
    // The first attempt's acceptance covers later ones. If the job has ended meanwhile, its request must expire.
    if (staged && job.attempt === 1) await this.#staging.accept(key, job.id);
  }

  /** Makes a worker look at the schedule at `wakeMs`. */
  async addTick(scheduleId: string, wakeMs: number): Promise<void> {
    await this.#add(tickId(scheduleId, wakeMs), "tick", { tick: scheduleId, dueAtMs: wakeMs }, wakeMs);
  }

  async find(key: SandboxKey, jobId: string): Promise<ScheduledJob | undefined> {
    const entry = await this.#entry(key, jobId);
    if (!entry) return undefined;
    const attempt = Number(entry.id?.split("~")[1] ?? 1);
    const { attemptsMade: failures, failedReason: problem } = entry;
    const { dueAtMs, job } = entry.data;
    return { jobId, attempt, dueAtMs, inbox: job?.inbox, labels: job?.labels, failures, problem };
  }

  /** Removes a job whose end was published. If a worker is just handing it on, the submission finds that it has ended. */
  async remove(jobId: string, attempt: number): Promise<void> {
    await this.#queue.remove(entryId(jobId, attempt));
  }

  /** Hands a job on now. False: it is not in the schedule. */
  async hurry(key: SandboxKey, jobId: string): Promise<boolean> {
    const entry = await this.#entry(key, jobId);
    if (!entry || !(await entry.isDelayed())) return false;
    try {
      await entry.promote();
      return true;
    } catch (error) {
      // It became due meanwhile.
      if (await entry.isDelayed()) throw error;
      return false;
    }
  }

  async removeTick(scheduleId: string, wakeMs: number): Promise<void> {
    await this.#queue.remove(tickId(scheduleId, wakeMs));
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #add(jobId: string, name: string, data: object, dueAtMs: number): Promise<void> {
    const options = {
      jobId,
      delay: Math.max(0, Math.min(dueAtMs, latestDueMs) - Date.now()),
      attempts: tries,
      backoff: { type: "berth" },
      stackTraceLimit: 1,
      removeOnComplete: true,
    };
    const add = () => this.#queue.add(name, data, options).catch(orRedisFull("adding to the schedule"));
    await add();
    if (!Replicated.of(this.#redis)) return;
    const entry = [`${scheduleQueue.prefix}:${scheduleQueue.name}:${jobId}`];
    // BullMQ adds the entry without waiting for replicas. If it was lost with its primary, it is added again. If it was handed on meanwhile,
    // the second submission finds its id known.
    while (!(await confirm.runAccepted(this.#redis, entry, [])) && Date.now() < dueAtMs) await add();
  }

  async #entry(key: SandboxKey, jobId: string): Promise<BullJob | undefined> {
    const { added } = await readAttempts(this.#redis, key, jobId);
    return await this.#queue.getJob(entryId(jobId, added + 1));
  }
}

/** Hash: an attempt that waits for its time. */
export function scheduledEntryKey(jobId: string, attempt: number): string {
  return `${scheduleQueue.prefix}:${scheduleQueue.name}:${entryId(jobId, attempt)}`;
}

/** Differs for each attempt: the next one is added while the entry of the one before may still exist. */
function entryId(jobId: string, attempt: number): string {
  return attempt > 1 ? `${jobId}~${attempt}` : jobId;
}

/** Never a job's entry id: those have at most one `~`. */
function tickId(scheduleId: string, wakeMs: number): string {
  return `tick~${scheduleId}~${wakeMs}`;
}
