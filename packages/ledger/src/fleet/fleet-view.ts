import {
  type GivenNames,
  redisKeys,
  type SandboxKey,
  type SetUpReport,
  sandboxKey,
  sharedOwner,
  type TenantId,
  tenantId,
  tenantOf,
  workerGoneMs,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readArtifactUsage } from "../artifacts/artifact-usage.ts";
import { checked, invalid } from "../checked.ts";
import { holderIn, readLease } from "../leases/lease-record.ts";
import { unfinishedKeys } from "../queues/queue-layout.ts";
import { redisNow } from "../redis-now.ts";
import { type CeilingUse, readCeilingUses } from "./tenant-ceilings.ts";
import { readTenantNames } from "./tenant-names.ts";
import { readWorker, type WorkerRecord } from "./worker-record.ts";

export interface SandboxView {
  readonly key: SandboxKey;
  readonly tenant: string;
  /** The worker that holds it now. */
  readonly worker: string | undefined;
  readonly epoch: number;
  readonly home: string | undefined;
  readonly pool: string;
  /** Jobs that wait or run. */
  readonly unfinished: number;
  readonly paused: boolean;
  readonly lastUsedMs: number;
  /** How the set-up command of its last container ended; absent without one. */
  readonly setUp?: SetUpReport;
  /** The given names of its key's parts; absent where the ids are the names. */
  readonly names?: GivenNames;
}

/** What a tenant has and uses now. */
export interface TenantUsage {
  readonly tenant: string;
  /** As it was given, where its id is another text. */
  readonly name?: string;
  readonly paused: boolean;
  /** Jobs that wait or run. */
  readonly unfinished: number;
  readonly artifacts: number;
  readonly artifactBytes: number;
  /** What it has of everything that has a ceiling. */
  readonly ceilings: readonly CeilingUse[];
  /** The most recently used. */
  readonly sandboxes: readonly SandboxView[];
}

/** What an autoscaler needs. Zeros included. */
export interface Scale {
  /** Sandboxes with work and without a holder, except those of paused tenants. */
  readonly waitingSandboxes: number;
  /** For how long the one that waits longest has waited. */
  readonly oldestWaitMs: number;
  readonly unfinishedJobs: number;
  readonly workers: number;
  readonly slots: number;
  readonly freeSlots: number;
}

export interface SandboxQuery {
  readonly tenant?: string;
  /** The most recently used; default 1,000. */
  readonly limit?: number;
}

interface Used {
  readonly key: SandboxKey;
  readonly usedMs: number;
}

const pageSize = 500;
/** How many sandboxes with work are counted for the scale: beyond it, more workers are needed anyway. */
const mostLookedAt = 10_000;

/** Looks at the fleet. Reads indexes only; its cost grows with what is shown, not with what is known. */
export class FleetView {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async workers(): Promise<WorkerRecord[]> {
    const now = await redisNow(this.#redis);
    const seen = await this.#redis.zrangebyscore(redisKeys.workers, now - workerGoneMs, "+inf", "WITHSCORES");
    const ids = seen.filter((_, index) => index % 2 === 0);
    const hashes = await Promise.all(ids.map((id) => this.#redis.hgetall(redisKeys.worker(id))));
    return ids
      .map((id, index) => readWorker(id, hashes[index] ?? {}, Number(seen[index * 2 + 1])))
      .filter((worker) => worker !== undefined);
  }

  async sandboxes({ tenant, limit = 1_000 }: SandboxQuery = {}): Promise<SandboxView[]> {
    const of = tenant === undefined ? undefined : checkedOwner(tenant);
    if (!(limit >= 0)) throw invalid("the limit", limit, "a limit is a number from 0 on");
    const now = await redisNow(this.#redis);
    const paused = new Set(await this.#redis.smembers(redisKeys.paused));
    const found: SandboxView[] = [];
    for (let from = 0; from < limit; from += pageSize) {
      const known = await this.#page(of, from, Math.min(from + pageSize, limit) - 1);
      const seen = await Promise.all(known.map((one) => this.#sandbox(one, now, paused)));
      found.push(...seen.filter((one) => one !== undefined));
      if (known.length < pageSize) break;
    }
    return found.sort((a, b) => b.lastUsedMs - a.lastUsedMs);
  }

  async usage(tenant: TenantId, limit?: number): Promise<TenantUsage> {
    const [sandboxes, paused, { bytes, artifacts }, ceilings, names] = await Promise.all([
      this.sandboxes({ tenant, ...(limit === undefined ? {} : { limit }) }),
      this.#redis.sismember(redisKeys.paused, tenant),
      readArtifactUsage(this.#redis, tenant),
      readCeilingUses(this.#redis, tenant),
      readTenantNames(this.#redis, [tenant]),
    ]);
    const name = names.get(tenant);
    return {
      tenant,
      ...(name === undefined ? {} : { name }),
      paused: paused === 1,
      unfinished: sandboxes.reduce((sum, { unfinished }) => sum + unfinished, 0),
      artifacts,
      artifactBytes: bytes,
      ceilings,
      sandboxes,
    };
  }

  async scale(): Promise<Scale> {
    const now = await redisNow(this.#redis);
    const workers = await this.workers();
    const page = ["WITHSCORES", "LIMIT", 0, mostLookedAt] as const;
    const pending = await this.#redis.zrangebyscore(redisKeys.pending, "-inf", "+inf", ...page);
    const keys = pending.filter((_, index) => index % 2 === 0);
    const deadlines = keys.length === 0 ? [] : await this.#redis.zmscore(redisKeys.leases, ...keys);
    const paused = new Set<string>(await this.#redis.smembers(redisKeys.paused));
    const waits = (key: string, index: number) =>
      Number(deadlines[index] ?? 0) <= now && !paused.has(tenantOf(sandboxKey.parse(key)));
    const unheld = keys.flatMap((key, index) =>
      !waits(key, index) ? [] : [now - Number(pending[index * 2 + 1])],
    );
    const sum = (of: (worker: WorkerRecord) => number) =>
      workers.reduce((total, worker) => total + of(worker), 0);
    return {
      waitingSandboxes: unheld.length,
      oldestWaitMs: Math.max(0, ...unheld.slice(0, 1)),
      unfinishedJobs: await this.#redis.zcard(redisKeys.unfinished),
      workers: workers.length,
      slots: sum(({ slots }) => slots),
      freeSlots: sum(({ slots, held }) => Math.max(0, slots - held)),
    };
  }

  /** From an index of all, or of the tenant's own: others' sandboxes cost nothing. */
  async #page(tenant: TenantId | undefined, from: number, to: number): Promise<Used[]> {
    const index = tenant === undefined ? redisKeys.sandboxes : redisKeys.sandboxesOf(tenant);
    const page = await this.#redis.zrevrange(index, from, to, "WITHSCORES");
    const keys = page.filter((_, at) => at % 2 === 0).map((text) => sandboxKey.parse(text));
    const usedMs = keys.map((_, at) => Number(page[at * 2 + 1]));
    if (tenant === undefined || keys.length === 0)
      return keys.map((key, at) => ({ key, usedMs: usedMs[at] ?? 0 }));
    // The tenant's index has the last submission. The fleet's index also has the last take by a worker.
    const scores = await this.#redis.zmscore(redisKeys.sandboxes, ...keys);
    return keys.map((key, at) => ({ key, usedMs: Number(scores[at] ?? usedMs[at]) }));
  }

  /** Undefined: it was destroyed, and has no jobs. */
  async #sandbox(
    { key, usedMs }: Used,
    now: number,
    paused: ReadonlySet<string>,
  ): Promise<SandboxView | undefined> {
    const lease = await readLease(this.#redis, key);
    const unfinished = await unfinishedCount(this.#redis, key);
    if (lease.isDestroyed && unfinished === 0) return undefined;
    const tenant = tenantOf(key);
    return {
      key,
      tenant,
      worker: holderIn(lease, now),
      epoch: lease.epoch,
      home: lease.home,
      pool: lease.pool,
      unfinished,
      paused: paused.has(tenant),
      lastUsedMs: usedMs,
      ...(lease.setUp === undefined ? {} : { setUp: lease.setUp }),
      ...(lease.names === undefined ? {} : { names: lease.names }),
    };
  }
}

async function unfinishedCount(redis: Redis, key: SandboxKey): Promise<number> {
  const [wait = "", active = "", prioritized = "", paused = ""] = unfinishedKeys(key);
  const counts = await Promise.all([
    redis.llen(wait),
    redis.llen(active),
    redis.zcard(prioritized),
    redis.llen(paused),
  ]);
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A tenant, or the owner of the sandbox that all tenants share. */
function checkedOwner(name: string): TenantId {
  return name === sharedOwner ? (name as TenantId) : checked(tenantId, name, "the tenant");
}
