import { redisKeys, type SandboxKey, type TenantId, tenantOf } from "@berth/protocol";
import { type Redis, Replicated, type Script, topologyOf } from "@berth/redis";

/** Tenants whose outbox this process has noted lately, by the connection that noted it. */
const noted = new WeakMap<Redis, Map<TenantId, number>>();
const notedForMs = 3_600_000;
const notedMost = 100_000;
const entriesAtOnce = 100;
const outboxesAtOnce = 100;

export async function isCluster(redis: Redis): Promise<boolean> {
  return (await topologyOf(redis)) === "cluster";
}

export interface SlotCall<R> {
  /** Whose slot it is. */
  readonly key: SandboxKey;
  readonly script: Script<R>;
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
  /** What the script has to know of other slots, for a cluster: its last argument there. */
  readonly facts?: () => Promise<object>;
}

/**
 * Runs a script that also reads or writes keys of other hash slots. On a single Redis it is one step. On a cluster it is told what it
 * has to know, and leaves what it has to say in an outbox of its own slot, which is delivered here. Whoever dies in between leaves
 * the outbox to the sweep: it is noted in an index before the script runs.
 */
export async function runInSlot<R>(
  redis: Redis,
  { key, script, keys, args, facts }: SlotCall<R>,
): Promise<R> {
  const topology = topologyOf(redis);
  if (topology === "single" || (await topology) === "single") return script.runAccepted(redis, keys, args);
  const tenant = tenantOf(key);
  await noteOutbox(redis, tenant);
  const known = facts ? [JSON.stringify(await facts())] : [];
  const reply = await script.runAccepted(redis, keys, [...args, ...known]);
  // What is not delivered now, the sweep delivers.
  await deliver(redis, tenant).catch(() => {});
  return reply;
}

/** Delivers what others left behind. The longest noted first; `from` and the answer: where to go on. */
export async function deliverOutboxes(redis: Redis, from: number): Promise<number> {
  if (!(await isCluster(redis))) return 0;
  const tenants = await redis.zrange(redisKeys.outboxes, String(from), String(from + outboxesAtOnce - 1));
  for (const tenant of tenants) await deliver(redis, tenant);
  return tenants.length < outboxesAtOnce ? 0 : from + outboxesAtOnce;
}

async function noteOutbox(redis: Redis, tenant: TenantId): Promise<void> {
  const known = noted.get(redis) ?? new Map<TenantId, number>();
  noted.set(redis, known);
  const now = Date.now();
  if ((known.get(tenant) ?? 0) > now - notedForMs) return;
  await accepted(redis, "ZADD", [redisKeys.outboxes, String(now), tenant]);
  if (known.size >= notedMost) known.clear();
  known.set(tenant, now);
}

/** Two may deliver the same at once: what scripts leave there may be written twice. */
async function deliver(redis: Redis, tenant: string): Promise<void> {
  const outbox = redisKeys.outbox(tenant);
  for (;;) {
    const entries = await redis.xrange(outbox, "-", "+", "COUNT", entriesAtOnce);
    for (const [id, [, commands = "[]"]] of entries) {
      for (const [command, ...args] of JSON.parse(commands) as [string, ...unknown[]][])
        await accepted(redis, command, args.map(String));
      await redis.xdel(outbox, id);
    }
    if (entries.length < entriesAtOnce) return;
  }
}

/** What is taken out of an outbox, or waits in one that an index names, must not be lost with a primary of another slot. */
async function accepted(redis: Redis, command: string, args: string[]): Promise<void> {
  const replicated = Replicated.of(redis);
  if (replicated) await replicated.make(args[0] ?? "", (primary) => primary.call(command, args));
  else await redis.call(command, args);
}
