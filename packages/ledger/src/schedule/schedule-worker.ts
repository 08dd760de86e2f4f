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
  /** Submits a due job. While it throws, the job stays in the schedule. */
  readonly onJob: (job: Job) => Promise<unknown>;
  /** Called for a due job that can never be accepted. The schedule then removes it. */
  readonly onRefused: (job: Job, fault: Fault) => Promise<unknown>;
  readonly onTick: (scheduleId: string, dueAtMs: number) => Promise<unknown>;
  /** Called for an entry that cannot be read. The schedule then removes it. */
  readonly onUnreadable: (id: string, data: unknown, problem: string) => Promise<unknown>;
  /** Called for the first failure of an entry. */
  readonly onTrouble: (id: string, message: string) => void;
  /** Another worker takes over the entries of a dead one after one to three of these. */
  readonly lockMs?: number;
}

const defaultLockMs = 5_000;
/** Entries handed on in parallel, so that trouble with one sandbox does not hold up others. Each takes a few round trips. */
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
 * Hands on due entries, in every worker of the fleet. An entry is removed only after it was handed on. BullMQ's check for stalled entries
 * is on here: handing an entry on twice is harmless, since submitting is idempotent under the job's id.
 */
export class ScheduleWorker {
  readonly #options: ScheduleWorkerOptions;
  readonly #worker: Worker;
  /** The last entry being handed on, by sandbox. */
  readonly #lastHanded = new Map<SandboxKey, Promise<void>>();

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
      // However often its taker dies, the entry stays.
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

  /** Takes no more entries, and waits for those being handed on. */
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

  /** Hands a job on after the sandbox's earlier ones. This worker hands on one job of a sandbox at a time. */
  async #handInOrder(id: string, due: DueEntry): Promise<void> {
    const key = sandboxKeyOf(due.job);
    const before = this.#lastHanded.get(key) ?? Promise.resolve();
    const hand = () => this.#handFirstOnes(id, due);
    const handed = before.then(hand, hand);
    this.#lastHanded.set(key, handed);
    try {
      await handed;
    } finally {
      if (this.#lastHanded.get(key) === handed) this.#lastHanded.delete(key);
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

  /** Adds the staged request, if the job has one. */
  async #load({ staged, ...rest }: ScheduledData): Promise<unknown> {
    if (!staged) return rest;
    const { id, ...of } = rest as unknown as Job;
    return { ...rest, request: await this.#options.staging.take(sandboxKeyOf(of), id, staged) };
  }
}
