import { Fault, problemsOf, redisKeys, type TenantId } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { readCeilings } from "../fleet/tenant-ceilings.ts";
import { type ScheduleState, scheduleState, wakeMs } from "./schedule-state.ts";

const advance = new Script({
  name: "schedule-advance",
  file: new URL("../../lua/schedule-advance.lua", import.meta.url),
  parse: (reply) => z.union([z.literal([0, 1]), z.tuple([z.literal("full"), z.number()])]).parse(reply),
});

/** The stored schedules. Each is replaced as a whole, by compare-and-swap. */
export class ScheduleStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async get(id: string): Promise<ScheduleState | undefined> {
    return (await this.#read(id)).state;
  }

  /** By id, one tenant's or all. One that cannot be read (another version wrote it) is left out. */
  async list(tenant?: TenantId): Promise<ScheduleState[]> {
    const all =
      tenant === undefined ? await this.#redis.hgetall(redisKeys.schedules) : await this.#of(tenant);
    return Object.entries(all)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, text]) => parse(text).state ?? []);
  }

  /** Ids of schedules that were due for a look before `ms`, the longest overdue first. */
  dueBefore(ms: number, limit: number): Promise<string[]> {
    return this.#redis.zrangebyscore(redisKeys.schedulesDue, "-inf", ms, "LIMIT", 0, limit);
  }

  /**
   * Replaces a schedule by the result of `change`, and retries if another process replaced it first. `change` may return the same value, or
   * undefined to remove it. Returns the stored value. Throws `schedule-unreadable`, and changes nothing, if this version cannot read the
   * schedule: a newer version may.
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
      const before = (state ?? next)?.spec.order.tenant ?? "";
      const tenant = next?.spec.order.tenant ?? before;
      const isNew = next !== undefined && (state === undefined || tenant !== before);
      const limit = isNew ? (await readCeilings(this.#redis, tenant)).schedules : 0;
      const keys = [
        redisKeys.schedules,
        redisKeys.schedulesDue,
        redisKeys.schedulesOf(before),
        redisKeys.schedulesOf(tenant),
      ];
      const args = [id, text, next ? JSON.stringify(next) : "", wake ?? "", limit];
      const answer = await advance.run(this.#redis, keys, args);
      if (answer === 1) return next;
      if (answer !== 0)
        throw new Fault("tenant-full", { tenant, ceiling: "schedules", used: answer[1], limit });
    }
  }

  /** Removes a schedule, also one that this version cannot read. False: there was none. */
  async remove(id: string): Promise<boolean> {
    const { text, state } = await this.#read(id);
    const removing = this.#redis.multi().hdel(redisKeys.schedules, id).zrem(redisKeys.schedulesDue, id);
    const tenant = state?.spec.order.tenant ?? tenantIn(text);
    if (tenant !== undefined) removing.srem(redisKeys.schedulesOf(tenant), id);
    const done = await removing.exec();
    return done?.[0]?.[1] === 1;
  }

  async #of(tenant: TenantId): Promise<Record<string, string>> {
    const ids = await this.#redis.smembers(redisKeys.schedulesOf(tenant));
    const texts = ids.length === 0 ? [] : await this.#redis.hmget(redisKeys.schedules, ...ids);
    return Object.fromEntries(ids.flatMap((id, at) => (texts[at] ? [[id, texts[at]]] : [])));
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

/** Of a schedule that this version cannot read. */
function tenantIn(text: string): string | undefined {
  const [, tenant] = /"tenant":"([a-z0-9_-]+)"/.exec(text) ?? [];
  return tenant;
}
