import {
  checked,
  pauseState,
  putState,
  type Schedule,
  type ScheduleState,
  ScheduleStore,
  type TenantNames,
  timingOf,
  timingProblem,
  wakeMs,
} from "@berth/ledger";
import {
  Fault,
  problemsOf,
  type ScheduleInput,
  type ScheduleSpec,
  scheduleSpec,
  tenantId,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** A schedule and its progress. */
export interface ScheduleView extends ScheduleSpec {
  /** Undefined: never again. While paused: the run that comes next without the pause. */
  readonly nextDueMs: number | undefined;
  readonly runs: number;
  readonly lastJobId: string | undefined;
}

export interface PutScheduleOptions {
  /** Throws if the caller may not replace the schedule that has the id. */
  readonly replaceable?: (known: ScheduleSpec) => void;
}

export interface ScheduleParts {
  readonly redis: Redis;
  readonly names: TenantNames;
  readonly ticks: Pick<Schedule, "addTick" | "removeTick">;
  readonly now?: () => number;
}

/** Jobs that run on a schedule. Any worker submits them; none needs to be running when a schedule is made. */
export class Schedules {
  readonly #store: ScheduleStore;
  readonly #names: TenantNames;
  readonly #ticks: ScheduleParts["ticks"];
  readonly #now: () => number;

  /** @internal Use `berth.schedules`. */
  constructor({ redis, names, ticks, now = Date.now }: ScheduleParts) {
    this.#store = new ScheduleStore(redis);
    this.#names = names;
    this.#ticks = ticks;
    this.#now = now;
  }

  /** Creates the schedule, or replaces the one of the same id. With unchanged times it continues where it was. */
  async put(input: ScheduleInput, options: PutScheduleOptions = {}): Promise<ScheduleView> {
    const parsed = scheduleSpec.safeParse(input);
    if (!parsed.success) throw new Fault("invalid-schedule", { problems: problemsOf(parsed.error) });
    const spec = parsed.data;
    const problem = timingProblem(timingOf(spec, this.#now()), this.#now());
    if (problem !== undefined) throw new Fault("invalid-schedule", { problems: [problem] });
    await this.#names.admit(tenantId.parse(spec.order.tenant), spec.order.names?.tenant);
    const change = (known: ScheduleState | undefined) => {
      if (known) options.replaceable?.(known.spec);
      return putState(spec, this.#now(), known);
    };
    return viewOf(await this.#change(spec.id, change));
  }

  async get(id: string): Promise<ScheduleView | undefined> {
    const state = await this.#store.get(id);
    return state && viewOf(state);
  }

  /** Ordered by id; all, or one tenant's. */
  async list({ tenant }: { readonly tenant?: string } = {}): Promise<ScheduleView[]> {
    const of = tenant === undefined ? undefined : checked(tenantId, tenant, "the tenant");
    return (await this.#store.list(of)).map(viewOf);
  }

  /** Runs nothing until `resume`. False: unknown id. */
  pause(id: string): Promise<boolean> {
    return this.#set(id, true);
  }

  /** Continues. The catch-up policy decides about missed runs. */
  resume(id: string): Promise<boolean> {
    return this.#set(id, false);
  }

  /** Removes it. Jobs already submitted still run. */
  async remove(id: string): Promise<boolean> {
    const known = await this.#store.get(id);
    const removed = await this.#store.remove(id);
    await this.#forgetTick(known);
    return removed;
  }

  async #set(id: string, paused: boolean): Promise<boolean> {
    if (!(await this.#store.get(id))) return false;
    await this.#change(id, (known) => known && pauseState(known, paused, this.#now()));
    return true;
  }

  async #change<S extends ScheduleState | undefined>(
    id: string,
    change: (known: ScheduleState | undefined) => S,
  ): Promise<S> {
    let before: ScheduleState | undefined;
    const after = (await this.#store.change(id, (known) => {
      before = known;
      return change(known);
    })) as S;
    const wake = after && wakeMs(after);
    if (before && wakeMs(before) !== wake) await this.#forgetTick(before);
    // A crash before this line loses the tick; the workers' sweep restores it.
    if (wake !== undefined) await this.#ticks.addTick(id, wake);
    return after;
  }

  async #forgetTick(state: ScheduleState | undefined): Promise<void> {
    const wake = state && wakeMs(state);
    if (wake !== undefined) await this.#ticks.removeTick(state?.spec.id ?? "", wake);
  }
}

function viewOf({ spec, nextDueMs, runs, lastJobId }: ScheduleState): ScheduleView {
  return { ...spec, nextDueMs: nextDueMs ?? undefined, runs, lastJobId };
}
