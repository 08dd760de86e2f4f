import {
  CronRunner,
  DeadLetters,
  DeadLetterWorker,
  type JobEvents,
  type MarkerWaits,
  queueKeys,
  Schedule,
  ScheduleStore,
  ScheduleWorker,
  ScopeDefaults,
  type Staging,
} from "@berth/ledger";
import { type Fault, type Job, type SandboxKey, sandboxKeyOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { within } from "@berth/service";
import type { Clock, LaterPort } from "@berth/tenancy";

export interface SchedulerOptions {
  readonly redis: Redis;
  readonly waits: MarkerWaits;
  readonly staging: Staging;
  readonly events: Pick<JobEvents, "cancel">;
  readonly worker: string;
  readonly clock: Clock;
  readonly sweepMs: number;
  readonly enqueue: (job: Job) => Promise<unknown>;
  readonly report: (event: SchedulerEvent) => void;
}

export type SchedulerEvent =
  /** A due job could not be moved to its queue; tried again until it can. Reported once per entry. */
  | { readonly event: "schedule.trouble"; readonly entry: string; readonly message: string }
  /** A run of a schedule was left out, because its job can never be accepted. */
  | { readonly event: "schedule.refused"; readonly schedule: string; readonly message: string }
  /** A due job can never be accepted; it ended as refused. */
  | { readonly event: "schedule.job-refused"; readonly jobId: string; readonly message: string }
  | { readonly event: "schedule.unreadable"; readonly entry: string; readonly message: string };

/** Moving a job takes a few round trips; while Redis is away it does not end. */
const stopMs = 5_000;

/** A worker's share of the due work: delayed jobs, retries, schedules, and dead letters that are re-driven. */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #schedule: Schedule;
  readonly #deadLetters: DeadLetters;
  readonly #due: ScheduleWorker;
  readonly #dead: DeadLetterWorker;
  readonly #cron: CronRunner;
  readonly #stopping = new AbortController();
  #sweeping: Promise<void> | undefined;

  constructor(options: SchedulerOptions) {
    const { redis, waits, staging, enqueue, report, clock } = options;
    this.#options = options;
    this.#schedule = new Schedule(redis, staging);
    this.#deadLetters = new DeadLetters(redis);
    const scopes = new ScopeDefaults(redis);
    this.#cron = new CronRunner({
      store: new ScheduleStore(redis),
      schedule: this.#schedule,
      enqueue,
      scopeOf: (job) => scopes.of(job),
      now: () => Math.round(clock.wall()),
      onRefused: (schedule, message) => report({ event: "schedule.refused", schedule, message }),
    });
    this.#due = new ScheduleWorker({
      redis,
      waits,
      staging,
      schedule: this.#schedule,
      onJob: enqueue,
      onRefused: (job, fault) => this.#refuse(job, fault),
      onTick: (id, dueAtMs) => this.#cron.run(id, dueAtMs),
      onUnreadable: (entry, data, message) => this.#addUnreadable(entry, data, message),
      onTrouble: (entry, message) => report({ event: "schedule.trouble", entry, message }),
    });
    this.#dead = new DeadLetterWorker({ redis, waits, enqueue });
  }

  start(): void {
    this.#due.start();
    this.#dead.start();
    this.#sweeping = this.#sweep();
  }

  /** Takes no more. Entries in work get `stopMs`; another worker moves those that are not done by then. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await within(stopMs, this.#letGo());
  }

  /** Moves a scheduled job of the sandbox to its queue now. */
  hurry(key: SandboxKey, jobId: string): Promise<boolean> {
    return this.#schedule.hurry(key, jobId);
  }

  /** The schedule and the dead letters, for the tenancy of one sandbox. */
  later(key: SandboxKey): LaterPort {
    const { worker, clock } = this.#options;
    return {
      retry: (next, dueAtMs) => this.#schedule.add(next, dueAtMs),
      addDeadLetter: (jobId, job, outcome, reason) =>
        this.#deadLetters.add({
          jobId,
          sandboxKey: key,
          job,
          outcome,
          reason,
          worker,
          atMs: Math.round(clock.wall()),
        }),
    };
  }

  async #letGo(): Promise<void> {
    await Promise.all([this.#due.stop(), this.#dead.stop(), this.#sweeping]);
    await Promise.all([this.#schedule.close(), this.#deadLetters.close()]);
  }

  /** The job was accepted, so it must end. No worker has begun it, so this one may write its terminal record, as a canceller may. */
  async #refuse(job: Job, { code, message }: Fault): Promise<void> {
    const { events, report } = this.#options;
    const outcome = { kind: "refused", code, message } as const;
    const key = sandboxKeyOf(job);
    const { id: jobId, attempt, inbox } = job;
    const waiting = { key, jobId, attempt, inbox, queue: queueKeys(key, jobId, attempt) };
    const reply = await events.cancel(waiting, { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } });
    if (reply === "finished-before") return;
    await this.later(key).addDeadLetter(jobId, job, outcome, "fault");
    report({ event: "schedule.job-refused", jobId, message });
  }

  async #addUnreadable(entry: string, job: unknown, message: string): Promise<void> {
    const { worker, clock, report } = this.#options;
    const outcome = { kind: "refused", code: "invalid-job", message: message.slice(0, 2_000) } as const;
    const about = { jobId: entry, sandboxKey: "", worker, atMs: Math.round(clock.wall()) };
    await this.#deadLetters.add({ ...about, job, outcome, reason: "unreadable" });
    report({ event: "schedule.unreadable", entry, message });
  }

  async #sweep(): Promise<void> {
    const { clock, sweepMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(sweepMs, signal).catch(() => {});
      // Redis may be away; its connection reports that once.
      if (!signal.aborted) await this.#cron.sweep().catch(() => {});
    }
  }
}
