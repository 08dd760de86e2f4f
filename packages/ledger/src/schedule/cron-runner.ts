import { isFault, type Job, job as jobSchema, scheduledJobId } from "@berth/protocol";
import type { Schedule } from "./schedule.ts";
import { decideState, firedState, type ScheduleState, wakeMs } from "./schedule-state.ts";
import type { ScheduleStore } from "./schedule-store.ts";

export interface CronRunnerOptions {
  readonly store: ScheduleStore;
  readonly schedule: Pick<Schedule, "addTick">;
  readonly enqueue: (job: Job) => Promise<unknown>;
  /** The scope of a job whose order names none. */
  readonly scopeOf: (job: Pick<Job, "tenant" | "agent">) => Promise<Job["scope"]>;
  readonly now: () => number;
  /** Called for a due time whose job can never be accepted. It is skipped. */
  readonly onRefused: (scheduleId: string, message: string) => void;
}

/** A schedule that is this late has lost its tick. */
const forgottenAfterMs = 2_000;
const sweptAtOnce = 1_000;

/**
 * Runs schedules. A tick only makes a worker look at a schedule. One worker replaces the schedule's state, and thereby decides which due
 * times run. It then submits a job for each of them and removes that due time from the state. If it dies in between, the state has the
 * rest, and the next tick or the sweep continues.
 */
export class CronRunner {
  readonly #options: CronRunnerOptions;

  constructor(options: CronRunnerOptions) {
    this.#options = options;
  }

  /** `dueAtMs`: of the tick. The clock of the worker that promoted it may be ahead of this one's. */
  async run(id: string, dueAtMs: number): Promise<void> {
    const { store } = this.#options;
    const now = Math.max(this.#options.now(), dueAtMs);
    const state = await store.change(id, (known) => known && decideState(known, now));
    await this.#wake(await this.#fire(state));
  }

  /** Adds ticks for schedules whose tick was lost when a worker died between two steps. */
  async sweep(): Promise<void> {
    const { store, schedule, now } = this.#options;
    for (const id of await store.dueBefore(now() - forgottenAfterMs, sweptAtOnce)) {
      const state = await store.get(id);
      const wake = state && wakeMs(state);
      if (wake !== undefined) await schedule.addTick(id, wake);
    }
  }

  /** Submits the decided runs. Returns the state that is left. */
  async #fire(state: ScheduleState | undefined): Promise<ScheduleState | undefined> {
    let left = state;
    for (const due of state?.firing?.dues ?? []) {
      if (!left) return undefined;
      await this.#enqueue(left, due);
      left = await this.#options.store.change(left.spec.id, (known) => known && firedState(known, due));
    }
    return left;
  }

  async #enqueue({ spec }: ScheduleState, dueMs: number): Promise<void> {
    const { enqueue, scopeOf, onRefused } = this.#options;
    const labels = { ...spec.order.labels, "berth.schedule": spec.id };
    const job = { ...spec.order, labels, version: 1, id: scheduledJobId(spec.id, dueMs) };
    try {
      const parsed = jobSchema.parse(job);
      const scope = spec.order.scope ?? (await scopeOf(parsed));
      await enqueue({ ...parsed, scope });
    } catch (error) {
      // A passing fault is retried. A run that can never be accepted must not hold up later runs.
      if (!isFault(error) || error.retry) throw error;
      onRefused(spec.id, error.message);
    }
  }

  async #wake(state: ScheduleState | undefined): Promise<void> {
    const wake = state && wakeMs(state);
    if (state && wake !== undefined) await this.#options.schedule.addTick(state.spec.id, wake);
  }
}
