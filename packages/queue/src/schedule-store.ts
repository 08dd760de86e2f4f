import { redisKeys } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { type ScheduleState, scheduleState, wakeMs } from "./schedule-state.ts";

const advance = new Script({
  name: "schedule-advance",
  file: new URL("../lua/schedule-advance.lua", import.meta.url),
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
      .flatMap(([, text]) => parse(text) ?? []);
  }

  /** Ids of those that were to be looked at before a moment, the longest overdue first. */
  dueBefore(ms: number, limit: number): Promise<string[]> {
    return this.#redis.zrangebyscore(redisKeys.schedulesDue, "-inf", ms, "LIMIT", 0, limit);
  }

  /**
   * Replaces a schedule by what `change` makes of it, and again from the start if somebody was faster. `change` may give the
   * same value back, or undefined to remove it. Gives what is there now.
   */
  async change(
    id: string,
    change: (known: ScheduleState | undefined) => ScheduleState | undefined,
  ): Promise<ScheduleState | undefined> {
    for (;;) {
      const { text, state } = await this.#read(id);
      const next = change(state);
      if (next === state && state !== undefined) return state;
      const wake = next && wakeMs(next);
      const keys = [redisKeys.schedules, redisKeys.schedulesDue];
      if (await advance.run(this.#redis, keys, [id, text, next ? JSON.stringify(next) : "", wake ?? ""]))
        return next;
    }
  }

  async #read(id: string): Promise<{ text: string; state: ScheduleState | undefined }> {
    const text = (await this.#redis.hget(redisKeys.schedules, id)) ?? "";
    return { text, state: text === "" ? undefined : parse(text) };
  }
}

function parse(text: string): ScheduleState | undefined {
  try {
    return scheduleState.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
