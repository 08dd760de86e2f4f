import { redisKeys, type SandboxKey, sandboxKey, type TenantId, tenantOf } from "@berth/protocol";
import { type Redis, type Script, topologyOf } from "@berth/redis";
import { Outboxes } from "./outbox.ts";
import { unfinishedKeys } from "./queues/queue-layout.ts";
import { redisNow } from "./redis-now.ts";

const outboxesOf = new WeakMap<Redis, Outboxes>();
const outboxesAtOnce = 100;
/** Sandboxes used this lately are checked for lost marks: longer than a failover and the sweeps after it. */
const usedLatelyMs = 600_000;

export async function isCluster(redis: Redis): Promise<boolean> {
  return (await topologyOf(redis)) === "cluster";
}

export interface SlotCall<R> {
  /** The sandbox whose tenant's slot has the keys. */
  readonly key: SandboxKey;
  readonly script: Script<R>;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
  /** Reads what the script needs from other slots. On a cluster it is the script's last argument. */
  readonly facts?: () => Promise<object>;
  /** Called when the step is made. Its outbox may not be delivered yet. */
  readonly onMade?: () => void;
}

/**
 * Runs a script that also reads or writes keys of other hash slots. On a single Redis it is one step. On a cluster the caller reads the
 * other slots first, the script leaves its writes to other slots in an outbox of its own slot, and the caller delivers them. If the caller
 * dies in between, the sweep delivers them: an index has the outbox before the script runs.
 */
export async function runInSlot<R>(
  redis: Redis,
  { key, script, keys, args, facts, onMade }: SlotCall<R>,
): Promise<R> {
  const topology = topologyOf(redis);
  if (topology === "single" || (await topology) === "single") return script.runAccepted(redis, keys, args);
  const tenant = tenantOf(key);
  const outboxes = outboxesFor(redis);
  await outboxes.note(tenant);
  const known = facts ? [JSON.stringify(await facts())] : [];
  const reply = await script.runAccepted(redis, keys, [...args, ...known]);
  onMade?.();
  // If this fails, the sweep delivers the outbox.
  await outboxes.deliver(tenant).catch(() => {});
  return reply;
}

/**
 * Delivers outboxes that other processes left behind, and marks sandboxes with work again if the index lost them with its primary. The
 * tenants noted first come first. `from` and the result: where the next call continues.
 */
export async function repairIndexes(redis: Redis, from: number): Promise<number> {
  if (!(await isCluster(redis))) return 0;
  const tenants = await redis.zrange(redisKeys.outboxes, String(from), String(from + outboxesAtOnce - 1));
  const outboxes = outboxesFor(redis);
  for (const tenant of tenants as TenantId[]) {
    // An outbox that cannot be delivered now must not hold up the others.
    await outboxes.deliver(tenant).catch(() => {});
    await outboxes.deliverAbandoned(tenant).catch(() => {});
    await markAgain(redis, tenant);
  }
  return tenants.length < outboxesAtOnce ? 0 : from + outboxesAtOnce;
}

function outboxesFor(redis: Redis): Outboxes {
  const outboxes = outboxesOf.get(redis) ?? new Outboxes(redis);
  outboxesOf.set(redis, outboxes);
  return outboxes;
}

async function markAgain(redis: Redis, tenant: TenantId): Promise<void> {
  const now = await redisNow(redis);
  const since = now - usedLatelyMs;
  const used = await redis.zrangebyscore(redisKeys.sandboxesOf(tenant), since, "+inf");
  if (used.length === 0) return;
  const marks = await redis.zmscore(redisKeys.pending, ...used);
  for (const [index, key] of used.entries()) {
    if (marks[index] != null) continue;
    const hasJobs = (await redis.exists(...unfinishedKeys(sandboxKey.parse(key)))) > 0;
    if (hasJobs) await redis.zadd(redisKeys.pending, "NX", now, key);
  }
}
