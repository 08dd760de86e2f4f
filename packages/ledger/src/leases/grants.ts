import { Fault, redisKeys, type TenantId, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Every tenant may use the profile and the pool of this name. */
export const grantedToAll = "default";

/** The names of profiles and pools that a tenant or key may use, `default` included. */
export interface GrantList {
  readonly profiles: readonly string[];
  readonly pools: readonly string[];
  /** Tenants whose files its sandboxes may read, at /team. */
  readonly peers: readonly string[];
}

/** Peers per tenant: their files are copied when a container starts. */
const mostPeers = 32;

/** The profile and pool that a job names; undefined stands for `default`. */
export interface Wanted {
  readonly profile?: string | undefined;
  readonly pool?: string | undefined;
}

/** Which profiles and pools each tenant may use besides `default`. Workers ask before every job that needs a grant. */
export class Grants {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async of(tenant: TenantId): Promise<GrantList> {
    const members = await this.#redis.smembers(redisKeys.grants(tenant));
    const named = (kind: string) =>
      members
        .filter((member) => member.startsWith(`${kind}:`))
        .map((member) => member.slice(kind.length + 1))
        .sort();
    const withDefault = (kind: string) => [grantedToAll, ...named(kind)];
    return { profiles: withDefault("profile"), pools: withDefault("pool"), peers: named("peer") };
  }

  /** Tenants whose files it may read. */
  async peersOf(tenant: TenantId): Promise<TenantId[]> {
    return (await this.of(tenant)).peers.map((peer) => tenantId.parse(peer));
  }

  async grant(tenant: TenantId, list: Partial<GrantList>): Promise<void> {
    const members = membersOf(list);
    await this.#refuseTooMany(tenant, list.peers ?? []);
    if (members.length > 0) await this.#redis.sadd(redisKeys.grants(tenant), ...members);
  }

  async revoke(tenant: TenantId, list: Partial<GrantList>): Promise<void> {
    const members = membersOf(list);
    if (members.length > 0) await this.#redis.srem(redisKeys.grants(tenant), ...members);
  }

  async #refuseTooMany(tenant: TenantId, peers: readonly string[]): Promise<void> {
    if (peers.length === 0) return;
    const problem = peers.includes(tenant) ? "a tenant cannot be its own peer" : undefined;
    const all = new Set([...(await this.of(tenant)).peers, ...peers]);
    if (problem === undefined && all.size <= mostPeers) return;
    throw new Fault("invalid-argument", {
      argument: `the peers of ${tenant}`,
      problem: problem ?? `a tenant has at most ${mostPeers}`,
    });
  }

  /** Throws `not-granted` for the first thing that the tenant may not use. Asks Redis only when a grant is needed. */
  async check(tenant: TenantId, { profile, pool }: Wanted): Promise<void> {
    const needed = membersOf({ profiles: [profile ?? grantedToAll], pools: [pool ?? grantedToAll] });
    if (needed.length === 0) return;
    const granted = await this.#redis.smismember(redisKeys.grants(tenant), ...needed);
    const missing = needed.find((_, index) => granted[index] !== 1);
    if (missing === undefined) return;
    const [kind, name = ""] = missing.split(":");
    throw new Fault("not-granted", { what: kind === "pool" ? "pool" : "profile", name, tenant });
  }
}

function membersOf({ profiles = [], pools = [], peers = [] }: Partial<GrantList>): string[] {
  const named = (kind: string, names: readonly string[]) =>
    names.filter((name) => name !== grantedToAll).map((name) => `${kind}:${name}`);
  return [...named("profile", profiles), ...named("pool", pools), ...peers.map((peer) => `peer:${peer}`)];
}
