import { builtInScope, type DefaultScope, defaultScope, layers, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { LRUCache } from "lru-cache";
import type { fleetRecords } from "../fleet/records.ts";
import type { FieldOf } from "../key-record.ts";

export interface ScopeQuestion {
  readonly tenant: string;
  readonly agent?: string | undefined;
}

/** How long an answer is cached: a change reaches every producer within this time. */
const validMs = 2_000;
const mostKnown = 10_000;
/** Of the fleet's settings: what its workers have as BERTH_SCOPE. */
const settingName = "scope" satisfies FieldOf<typeof fleetRecords.settings>;

/**
 * The scope of jobs that name none: that of the first live layer that has one (`agent.TENANT.NAME`, `tenant.ID`, `fleet`), otherwise
 * the workers' BERTH_SCOPE. The program that submits a job asks here once. The sandbox's key is derived from the answer, which then
 * travels with the job.
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

  /** Drops the cached answers, after this process changed a layer. */
  forget(): void {
    this.#known.clear();
  }

  /** Makes a worker's BERTH_SCOPE the fleet's. Returns the previous one. */
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
    const scopes = [...texts.map(scopeIn), defaultScope.safeParse(base).data];
    return scopes.find((one) => one !== undefined) ?? builtInScope;
  }
}

/** Undefined for a layer that cannot be read. Its jobs are refused later, where the profile is merged. */
function scopeIn(text: string | null): DefaultScope | undefined {
  if (text === null) return undefined;
  try {
    return defaultScope.safeParse(JSON.parse(text).settings?.scope).data;
  } catch {
    return undefined;
  }
}
