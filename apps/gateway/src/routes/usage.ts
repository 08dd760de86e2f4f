import { dayUsage, tenantId, usageDay, usageRange, usageSums } from "@berth/protocol";
import { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import { tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";

const days = { from: usageDay, to: usageDay.describe("included") };
const tenantReport = output(
  "UsageReport",
  z.object({
    tenant: z.string(),
    ...days,
    total: usageSums,
    days: z.array(dayUsage).describe("those on which its jobs used something"),
  }),
);
const fleetReport = output(
  "FleetUsage",
  z.object({
    ...days,
    tenants: z
      .array(
        z.object({
          tenant: z.string(),
          name: z.string().optional().describe("as it was given, where the id is another"),
          ...usageSums.shape,
        }),
      )
      .describe("the tenant that used the most cpu first"),
    truncated: z.boolean().describe("true: only the thousand tenants that used something last are counted"),
  }),
);
const about =
  "Days are those of UTC, the last thirty if no others are given, at most 400 of them. What a job used counts for the day on which it ended.";

/** What jobs used, by day. */
export function usageRoutes({ berth }: Parts): AnyRoute[] {
  const ofTenant = route(
    {
      method: "GET",
      path: "/v1/tenants/:tenant/usage",
      tag: "tenants",
      summary: "What a tenant's jobs used, day by day",
      about,
      access: "key",
      params: z.object({ tenant: tenantId }),
      query: usageRange,
      answers: { 200: { about: "Cpu, time, memory and bytes", schema: tenantReport } },
    },
    async ({ params, query, principal }) => {
      const tenant = tenantFor(principal, params.tenant);
      return { status: 200, body: await berth.tenant(tenant).used(query) };
    },
  );

  const ofAll = route(
    {
      method: "GET",
      path: "/v1/usage",
      tag: "tenants",
      summary: "What each tenant's jobs used",
      about,
      access: "admin",
      cost: 50,
      query: usageRange.extend({ limit: z.coerce.number().int().min(1).max(1_000).default(100) }),
      answers: { 200: { about: "Cpu, time, memory and bytes", schema: fleetReport } },
    },
    async ({ query }) => ({ status: 200, body: await berth.usage(query) }),
  );

  return [ofTenant, ofAll];
}
