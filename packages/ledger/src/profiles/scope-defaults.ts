import { builtInScope, type DefaultScope, defaultScope, layers, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { LRUCache } from "lru-cache";
import type { fleetRecords } from "../fleet/records.ts";
import type { FieldOf } from "../key-record.ts";

export interface ScopeQuestion {
  readonly tenant: string;
  readonly agent?: string | undefined;
}

/** How long an answer is good for: a change reaches every producer within it. */
const validMs = 2_000;
const mostKnown = 10_000;
/** Of the fleet's settings: what its workers have as BERTH_SCOPE. */
const settingName = "scope" satisfies FieldOf<typeof fleetRecords.settings>;

/**
 * The scope of jobs that name none: of the live layers `agent.TENANT.NAME`, `tenant.ID` and `fleet`, the first that says one, then
 * what the workers were started with. The program that submits a job asks here, once: its sandbox's key is made of the answer, which
 * then travels with the job. Every producer asks the same Redis.
 */
export class ScopeDefaults {
  readonly #redis: Redis;
  readonly #known = new LRUCache<string, Promise<DefaultScope>>({ max: mostKnown, ttl: validMs });

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  of({ tenant, agent }: ScopeQuestion): Promise<DefaultScope> {
    const about = JSON.stringify([tenant, agent]);
    const known = this.#known.get(about);
    if (known) return known;
    const scope = this.#read(tenant, agent);
    this.#known.set(about, scope);
    scope.catch(() => this.#known.delete(about));
    return scope;
  }

  /** A layer was changed here: what comes next asks again. */
  forget(): void {
    this.#known.clear();
  }

  /** What a worker was started with becomes the fleet's. Gives what it was before. */
  async setBase(scope: DefaultScope): Promise<DefaultScope | undefined> {
    const before = await this.#redis.hget(redisKeys.settings, settingName);
    if (before !== scope) await this.#redis.hset(redisKeys.settings, settingName, scope);
    return defaultScope.safeParse(before).data;
  }

  async #read(tenant: string, agent: string | undefined): Promise<DefaultScope> {
    const ids = [
      ...(agent === undefined ? [] : [layers.agent(tenant, agent)]),
      layers.tenant(tenant),
      layers.fleet,
    ];
    const [texts, base] = await Promise.all([
      this.#redis.hmget(redisKeys.profiles, ...ids),
      this.#redis.hget(redisKeys.settings, settingName),
    ]);
    const said = [...texts.map(scopeIn), defaultScope.safeParse(base).data];
    return said.find((one) => one !== undefined) ?? builtInScope;
  }
}

/** A layer that cannot be read says nothing of it: its jobs are refused where its profile is merged. */
function scopeIn(text: string | null): DefaultScope | undefined {
  if (text === null) return undefined;
  try {
    return defaultScope.safeParse(JSON.parse(text).settings?.scope).data;
  } catch {
    return undefined;
  }
}
