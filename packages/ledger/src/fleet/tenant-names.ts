import { Fault, isMappedTenant, redisKeys, type TenantId, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { LRUCache } from "lru-cache";
import { checked } from "../checked.ts";

/** How long a process remembers a name. After that it writes the name again, in case a failover lost it. */
const rememberedMs = 600_000;
const maxRemembered = 10_000;

/** Names of tenants whose ids were made of them. Code that creates something for a tenant calls `admit` first. */
export class TenantNames {
  readonly #redis: Redis;
  /** Promises: of two calls for one tenant, the first is answered first. */
  readonly #known = new LRUCache<string, Promise<string>>({ max: maxRemembered, ttl: rememberedMs });

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Stores the tenant's given name, or reads the stored one; undefined if the id is the name. Throws `unknown-tenant` for an id that only
   * a name can produce, if no such name is stored.
   */
  async admit(tenant: TenantId, given?: string): Promise<string | undefined> {
    if (!isMappedTenant(tenant)) return undefined;
    const isName = given !== undefined && given !== tenant && tenantId.safeParse(given).data === tenant;
    const how = `${isName ? "named" : "by its id"} ${tenant}`;
    const known = this.#known.get(how);
    if (known) return known;
    const name = isName ? this.#note(tenant, given.normalize("NFC")) : this.#read(tenant);
    this.#known.set(how, name);
    name.catch(() => this.#known.delete(how));
    return name;
  }

  /** The id of a tenant for which something is about to be created. */
  async admitGiven(given: string): Promise<TenantId> {
    const tenant = checked(tenantId, given, "the tenant");
    await this.admit(tenant, given);
    return tenant;
  }

  async #note(tenant: TenantId, name: string): Promise<string> {
    await this.#redis.set(redisKeys.tenantName(tenant), name);
    return name;
  }

  async #read(tenant: TenantId): Promise<string> {
    const name = await this.#redis.get(redisKeys.tenantName(tenant));
    if (name === null) throw new Fault("unknown-tenant", { tenant });
    return name;
  }
}

/** By id, of those that have a name of their own. */
export async function readTenantNames(
  redis: Redis,
  tenants: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const mapped = [...new Set(tenants)].filter((tenant) => isMappedTenant(tenant as TenantId));
  // One by one: on a cluster each is in its tenant's own slot.
  const names = await Promise.all(mapped.map((tenant) => redis.get(redisKeys.tenantName(tenant))));
  return new Map(mapped.flatMap((tenant, index) => (names[index] ? [[tenant, names[index]] as const] : [])));
}
