import type { Berth } from "@berth/client";
import { partsOfKey } from "@berth/protocol";
import type { TenantsDoor } from "../door.ts";

/** More sandboxes than any tenant has. */
const most = 100_000;

export function clientTenants(berth: Berth): TenantsDoor {
  return {
    pause: async (tenant) => berth.tenant(tenant).pause(),
    resume: async (tenant) => berth.tenant(tenant).resume(),
    grant: async (tenant, list) => berth.tenant(tenant).grant(list),
    revoke: async (tenant, list) => berth.tenant(tenant).revoke(list),
    holdings: (tenant) => berth.tenant(tenant).holdings({ limit: most }),
    used: (tenant, range) => berth.tenant(tenant).used(range),
    usedByAll: (query) => berth.usage(query),
    async destroy(tenant) {
      const ids: string[] = [];
      for (const { key } of await berth.sandboxes({ tenant, limit: most })) {
        const parts = partsOfKey(key);
        if (!parts) continue;
        const job = await berth.submit({ ...parts, request: { kind: "destroy" } }).enqueued();
        ids.push(job.id);
      }
      await berth.tenant(tenant).removeSnapshots();
      return ids;
    },
  };
}
