import { redisKeys, type TenantId } from "@berth/protocol";
import { OneAfterAnother, type Redis, Script } from "@berth/redis";
import { LRUCache } from "lru-cache";

const notedForMs = 3_600_000;
const notedMost = 100_000;
const entriesAtOnce = 100;
/** A process that read an entry so long ago and did not remove it has died. */
const abandonedMs = 5_000;
/** How long a step waits until its outbox is delivered. Another primary may be away, and its failover takes longer. */
const deliverWaitMs = 1_000;
/** The group gives each entry to one process. One shared consumer name, since Redis would keep a name per process for ever. */
const group = "deliverers";
const consumer = "any";

type Entry = [id: string, fields: string[]];

const carryOut = new Script({
  name: "deliver",
  file: new URL("../lua/deliver.lua", import.meta.url),
  parse: (reply) => reply === 1,
});

/**
 * Delivers what the scripts of a tenant's slot left for other slots.
 *
 *   left by a script ──read by one process──▶ carried out there ──▶ removed
 *                          └──it died──▶ claimed by the sweep
 */
export class Outboxes {
  readonly #redis: Redis;
  /** Tenants whose outbox was noted lately. */
  readonly #noted = new LRUCache<TenantId, true>({ max: notedMost, ttl: notedForMs });
  /** By tenant, while something is being delivered. */
  readonly #delivering = new Map<TenantId, OneAfterAnother<void>>();
  /** Tenants with a late delivery, for which callers do not wait. */
  readonly #late = new Set<TenantId>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Adds the outbox to the sweep's index. Call it before a script may fill the outbox. */
  async note(tenant: TenantId): Promise<void> {
    if (this.#noted.has(tenant)) return;
    await carryOut.runAccepted(this.#redis, [redisKeys.outboxes], ["ZADD", Date.now(), tenant]);
    this.#noted.set(tenant, true);
  }

  /**
   * Resolves when the outbox is delivered, or another process is delivering it. A late delivery continues in the background, so that tenants
   * of one primary do not wait for another primary.
   */
  async deliver(tenant: TenantId): Promise<void> {
    const delivering = this.#delivering.get(tenant) ?? new OneAfterAnother(() => this.#deliver(tenant));
    this.#delivering.set(tenant, delivering);
    const delivered = delivering.next().finally(() => {
      if (delivering.isIdle) this.#delivering.delete(tenant);
    });
    if (this.#late.has(tenant)) return void delivered.catch(() => {});
    const { promise: late, resolve: giveUp } = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#late.add(tenant);
      void delivered.catch(() => {}).then(() => this.#late.delete(tenant));
      giveUp();
    }, deliverWaitMs);
    await Promise.race([delivered, late]).finally(() => clearTimeout(timer));
  }

  /** Delivers entries that a dead process had read. */
  async deliverAbandoned(tenant: TenantId): Promise<void> {
    const key = redisKeys.outbox(tenant);
    const args = [key, group, consumer, abandonedMs, "0-0", "COUNT", entriesAtOnce] as const;
    const [, entries] = (await this.#redis.xautoclaim(...args)) as [string, Entry[]];
    await this.#carryOut(key, entries);
  }

  async #deliver(tenant: TenantId): Promise<void> {
    const key = redisKeys.outbox(tenant);
    for (;;) {
      const entries = await this.#unread(key);
      await this.#carryOut(key, entries);
      if (entries.length < entriesAtOnce) return;
    }
  }

  async #unread(key: string): Promise<Entry[]> {
    const as = ["GROUP", group, consumer, "COUNT", entriesAtOnce] as const;
    const read = () => this.#redis.xreadgroup(...as, "STREAMS", key, ">");
    const reply = await read().catch(async (error: Error) => {
      if (!/\bNOGROUP\b/.test(error.message)) throw error;
      await this.#redis.xgroup("CREATE", key, group, "0", "MKSTREAM").catch(() => {});
      return await read();
    });
    const [[, entries = []] = []] = (reply ?? []) as [string, Entry[]][];
    return entries;
  }

  /** An entry may be delivered twice: by a process that died before removing it, and by the sweep. */
  async #carryOut(key: string, entries: readonly Entry[]): Promise<void> {
    const delivered = entries.map(async ([id, fields]) => {
      const commands = JSON.parse(fields?.[1] ?? "[]") as [string, string, ...unknown[]][];
      await Promise.all(
        commands.map(([command, changed, ...args]) =>
          carryOut.runAccepted(this.#redis, [changed], [command, ...args.map(String)]),
        ),
      );
      await Promise.all([this.#redis.xack(key, group, id), this.#redis.xdel(key, id)]);
    });
    await Promise.all(delivered);
  }
}
