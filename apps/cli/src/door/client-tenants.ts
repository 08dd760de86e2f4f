import type { Berth } from "@berth/client";
import type { SandboxKey } from "@berth/protocol";
import type { JobOrder, TenantsDoor } from "../door.ts";

/** More sandboxes than any tenant has. */
const most = 100_000;

export function clientTenants(berth: Berth): TenantsDoor {
  return {
    pause: async (tenant) => berth.tenant(tenant).pause(),
    resume: async (tenant) => berth.tenant(tenant).resume(),
    grant: async (tenant, list) => berth.tenant(tenant).grant(list),
    revoke: async (tenant, list) => berth.tenant(tenant).revoke(list),
    usage: (tenant) => berth.tenant(tenant).usage({ limit: most }),
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
