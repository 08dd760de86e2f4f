import { redisKeys, sandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";

const mostTenants = 50;
const scannedAtOnce = 1_000;
const mostScans = 100;

/** Tenants whose names contain a text, in the order of their names: at most fifty, of the first hundred thousand sandboxes. */
export async function tenantsLike(redis: Redis, part: string): Promise<string[]> {
  // These characters have no meaning in Redis' patterns.
  if (!/^[a-z0-9_-]{1,63}$/.test(part)) return [];
  const found = new Set<string>();
  let cursor = "0";
  for (let scan = 0; scan < mostScans && found.size < mostTenants; scan++) {
    const pattern = ["MATCH", `*${part}*`, "COUNT", scannedAtOnce] as const;
    const [next, members] = await redis.zscan(redisKeys.sandboxes, cursor, ...pattern);
    for (let at = 0; at < members.length; at += 2) {
      const tenant = tenantOf(sandboxKey.parse(members[at]));
      if (tenant.includes(part)) found.add(tenant);
    }
    cursor = next;
    if (cursor === "0") break;
  }
  return [...found].sort().slice(0, mostTenants);
}
