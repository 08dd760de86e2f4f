import type { Berth } from "@berth/client";
import { redisKeys, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { JobOrder, TenantsDoor } from "../door.ts";

/** More sandboxes than any tenant has. */
const most = 100_000;

export function clientTenants(redis: Redis, berth: Berth): TenantsDoor {
  return {
    pause: async (tenant) => berth.tenant(tenant).pause(),
    resume: async (tenant) => berth.tenant(tenant).resume(),
    grant: async (tenant, list) => berth.tenant(tenant).grant(list),
    revoke: async (tenant, list) => berth.tenant(tenant).revoke(list),
    async usage(tenant) {
      const sandboxes = await berth.sandboxes({ tenant, limit: most });
      const [bytes, count] = await redis.hmget(redisKeys.artifactUsage, tenant, `${tenant}/count`);
      return {
        tenant,
        paused: (await redis.sismember(redisKeys.paused, tenant)) === 1,
        unfinished: sandboxes.reduce((sum, { unfinished }) => sum + unfinished, 0),
        artifacts: Number(count ?? 0),
        artifactBytes: Number(bytes ?? 0),
        sandboxes,
        ...(await berth.tenant(tenant).grants()),
      };
    },
    async destroy(tenant) {
      const ids: string[] = [];
      for (const { key } of await berth.sandboxes({ tenant, limit: most })) {
        const job = await berth.submit({ ...orderFor(key), request: { kind: "destroy" } }).enqueued();
        ids.push(job.id);
      }
      return ids;
    },
  };
}

/** What a sandbox key was made of. */
function orderFor(key: SandboxKey): Pick<JobOrder, "tenant" | "scope" | "session" | "agent"> {
  const [tenant = "", kind, name = ""] = key.split(".");
  const whose = tenant as JobOrder["tenant"];
  if (kind === "s") return { tenant: whose, scope: "session", session: name };
  if (kind === "a") return { tenant: whose, scope: "agent", agent: name };
  return { tenant: whose, scope: "tenant" };
}
