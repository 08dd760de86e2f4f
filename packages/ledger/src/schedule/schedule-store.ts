import { Fault, problemsOf, redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { type ScheduleState, scheduleState, wakeMs } from "./schedule-state.ts";

const advance = new Script({
  name: "schedule-advance",
  file: new URL("../../lua/schedule-advance.lua", import.meta.url),
  parse: (reply) => z.union([z.literal(0), z.literal(1)]).parse(reply) === 1,
});

/** Where schedules are kept. Each is changed as a whole, and only from what was read. */
export class ScheduleStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async get(id: string): Promise<ScheduleState | undefined> {
    return (await this.#read(id)).state;
  }

  /** By id. One that cannot be read (another version wrote it) is left out. */
  async list(): Promise<ScheduleState[]> {
    const all = await this.#redis.hgetall(redisKeys.schedules);
    return Object.entries(all)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, text]) => parse(text).state ?? []);
  }

  /** Ids of those that were to be looked at before a moment, the longest overdue first. */
  dueBefore(ms: number, limit: number): Promise<string[]> {
    return this.#redis.zrangebyscore(redisKeys.schedulesDue, "-inf", ms, "LIMIT", 0, limit);
  }

  /**
   * Replaces a schedule by what `change` makes of it, and again from the start if somebody was faster. `change` may give the
   * same value back, or undefined to remove it. Gives what is there now. Throws `schedule-unreadable` and changes nothing when
   * this version cannot read the schedule: a newer one may.
   */
  async change(
    id: string,
    change: (known: ScheduleState | undefined) => ScheduleState | undefined,
  ): Promise<ScheduleState | undefined> {
    for (;;) {
      const { text, state, problem } = await this.#read(id);
      if (problem !== undefined) throw new Fault("schedule-unreadable", { schedule: id, detail: problem });
      const next = change(state);
      if (next === state && state !== undefined) return state;
      const wake = next && wakeMs(next);
      const keys = [redisKeys.schedules, redisKeys.schedulesDue];
      if (await advance.run(this.#redis, keys, [id, text, next ? JSON.stringify(next) : "", wake ?? ""]))
        return next;
    }
  }

  /** Removes it whether or not it can be read. False: there was none. */
  async remove(id: string): Promise<boolean> {
    const done = await this.#redis
      .multi()
      .hdel(redisKeys.schedules, id)
      .zrem(redisKeys.schedulesDue, id)
      .exec();
    return done?.[0]?.[1] === 1;
  }

  async #read(id: string): Promise<Found & { readonly text: string }> {
    const text = (await this.#redis.hget(redisKeys.schedules, id)) ?? "";
    return { text, ...(text === "" ? {} : parse(text)) };
  }
}

interface Found {
  readonly state?: ScheduleState;
  /** Why it cannot be read. */
  readonly problem?: string;
}

function parse(text: string): Found {
  try {
    const parsed = scheduleState.safeParse(JSON.parse(text));
    return parsed.success ? { state: parsed.data } : { problem: problemsOf(parsed.error).join("; ") };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
