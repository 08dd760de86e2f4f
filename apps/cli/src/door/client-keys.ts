import { tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { UsageError } from "../complaint.ts";
import type { KeysDoor } from "../door.ts";

/** The gateway's keys, in the Redis that it shares with the fleet: how the first one is made. */
export function clientKeys(redis: Redis): KeysDoor {
  const store = async () => {
    const { ApiKeys } = await import("@berth/gateway");
    return new ApiKeys(redis);
  };
  return {
    async create({ tenant, expiresInSeconds, ...key }) {
      const parsed = tenant === undefined ? undefined : tenantId.safeParse(tenant);
      if (parsed?.error) throw new UsageError(`--tenant: ${parsed.error.issues[0]?.message}`);
      const expiresAtMs = expiresInSeconds === undefined ? undefined : Date.now() + expiresInSeconds * 1_000;
      return (await store()).create({ ...key, tenant: parsed?.data, expiresAtMs });
    },
    list: async () => (await store()).list(),
    revoke: async (id) => (await store()).revoke(id),
  };
}
