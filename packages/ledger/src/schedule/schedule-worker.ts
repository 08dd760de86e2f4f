import {
  backoffMs,
  type Fault,
  isFault,
  type Job,
  job as jobSchema,
  mayPass,
  problemsOf,
  type SandboxKey,
  sandboxKeyOf,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type Job as BullJob, Worker } from "bullmq";
import { z } from "zod";
import { bullConnection } from "../queues/connection.ts";
import type { MarkerWaits } from "../queues/marker-waits.ts";
import { type Schedule, type StagingPort, scheduleQueue } from "./schedule.ts";

export interface ScheduleWorkerOptions {
  readonly redis: Redis;
  readonly waits: MarkerWaits;
  readonly staging: StagingPort;
  readonly schedule: Pick<Schedule, "firstDue">;
  /** Hands a job on. While it throws, the job stays here. */
  readonly onJob: (job: Job) => Promise<unknown>;
  /** A due job that can never be accepted. It is gone afterwards. */
  readonly onRefused: (job: Job, fault: Fault) => Promise<unknown>;
  readonly onTick: (scheduleId: string, dueAtMs: number) => Promise<unknown>;
  /** An entry that cannot be read. It is gone afterwards. */
  readonly onUnreadable: (id: string, data: unknown, problem: string) => Promise<unknown>;
  /** The first failure of an entry; further ones are not reported. */
  readonly onTrouble: (id: string, message: string) => void;
  /** Entries that a dead worker was handing on are taken over by another after one to three of these. */
  readonly lockMs?: number;
}

const defaultLockMs = 5_000;
/** Handing on is a few round trips; side by side, so that one sandbox's trouble holds up no other. */
const atOnce = 16;
/** After a lost connection BullMQ would rest for 15 seconds. */
const reconnectMs = 250;
const again = { backoffMs: 250, maxBackoffMs: 30_000, factor: 2, jitter: 0.5 } as const;

const staged = z.object({ bytes: z.number(), sha256: z.string() });
const { tenant, session, agent, scope } = jobSchema.shape;
const scheduledData = z.looseObject({ tenant, session, agent, scope, staged: staged.optional() });
type ScheduledData = z.infer<typeof scheduledData>;
const dueEntry = z.object({ job: scheduledData, dueAtMs: z.number() });
type DueEntry = z.infer<typeof dueEntry>;
const entry = z.union([z.object({ tick: z.string(), dueAtMs: z.number() }), dueEntry]);

/**
 * Hands on what is due, in every worker of the fleet. An entry is gone only after it was handed on. BullMQ's own check for
 * entries whose taker died is on here: handing one on twice is harmless, since the enqueuer knows its id.
 */
export class ScheduleWorker {
  readonly #options: ScheduleWorkerOptions;
  readonly #worker: Worker;
  /** The entries being handed on, by sandbox. */
  readonly #lines = new Map<SandboxKey, Promise<void>>();

  constructor(options: ScheduleWorkerOptions) {
    this.#options = options;
    const lockMs = options.lockMs ?? defaultLockMs;
    const ofWorker = {
      connection: bullConnection(options.redis),
      prefix: scheduleQueue.prefix,
      autorun: false,
      concurrency: atOnce,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      // However often its taker dies, it is not given up.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: reconnectMs,
      settings: { backoffStrategy: (failures: number) => backoffMs(failures, again) },
    };
    const hand = (taken: BullJob) => this.#hand(taken);
    this.#worker = new Worker(scheduleQueue.name, hand, ofWorker, options.waits.backend);
    // The connection itself reports its errors, once per outage.
    this.#worker.on("error", () => {});
  }

  start(): void {
    void this.#worker.run();
  }

  /** Takes nothing more and waits for what is being handed on. */
  async stop(): Promise<void> {
    await this.#worker.close();
  }

  async #hand(taken: BullJob): Promise<void> {
    const { onTick, onTrouble, onUnreadable } = this.#options;
    const id = taken.id ?? "";
    try {
      const parsed = entry.safeParse(taken.data);
      if (!parsed.success) await onUnreadable(id, taken.data, problemsOf(parsed.error).join("; "));
      else if ("tick" in parsed.data) await onTick(parsed.data.tick, parsed.data.dueAtMs);
      else await this.#handInOrder(id, parsed.data);
    } catch (error) {
      if (taken.attemptsMade === 0) onTrouble(id, error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  /** After the sandbox's jobs that come before it. Here one sandbox's jobs are handed on one at a time. */
  async #handInOrder(id: string, due: DueEntry): Promise<void> {
    const key = sandboxKeyOf(due.job);
    const before = this.#lines.get(key) ?? Promise.resolve();
    const hand = () => this.#handFirstOnes(id, due);
    const handed = before.then(hand, hand);
    this.#lines.set(key, handed);
    try {
      await handed;
    } finally {
      if (this.#lines.get(key) === handed) this.#lines.delete(key);
    }
  }

  async #handFirstOnes(id: string, { job, dueAtMs }: DueEntry): Promise<void> {
    const key = sandboxKeyOf(job);
    for (;;) {
      const first = await this.#options.schedule.firstDue(key, dueAtMs);
      if (first === undefined || first.jobId === id) {
        await this.#handJob(id, job);
        await first?.remove();
        return;
      }
      const earlier = dueEntry.safeParse(first.data);
      if (earlier.success) await this.#handJob(first.jobId, earlier.data.job);
      await first.remove();
    }
  }

  async #handJob(id: string, data: ScheduledData): Promise<void> {
    const { onUnreadable } = this.#options;
    let loaded: unknown;
    try {
      loaded = await this.#load(data);
    } catch (error) {
      if (!isFault(error) || error.retry) throw error;
      await onUnreadable(id, data, error.message);
      return;
    }
    const parsed = jobSchema.safeParse(loaded);
    if (parsed.success) await this.#accept(parsed.data);
    else await onUnreadable(id, data, problemsOf(parsed.error).join("; "));
  }

  async #accept(job: Job): Promise<void> {
    const { onJob, onRefused } = this.#options;
    try {
      await onJob(job);
    } catch (error) {
      if (!isFault(error) || mayPass(error)) throw error;
      await onRefused(job, error);
    }
  }

  /** With its request, if that was too large to be kept here. */
  async #load({ staged, ...rest }: ScheduledData): Promise<unknown> {
    if (!staged) return rest;
    const { id, ...of } = rest as unknown as Job;
    return { ...rest, request: await this.#options.staging.take(sandboxKeyOf(of), id, staged) };
  }
}
