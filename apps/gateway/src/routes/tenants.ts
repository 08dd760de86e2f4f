import {
  agentName,
  ceilingName,
  defaultScope,
  givenTenant,
  partsOfKey,
  poolName,
  profileName,
  tenantId,
} from "@berth/protocol";
import { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import { draftOf } from "../jobs/submission.ts";
import { type AuditAction, noted } from "../keys/audit.ts";
import { tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { input, output } from "../schemas/registry.ts";
import { sandboxView } from "../schemas/sandbox.ts";

const params = z.object({ tenant: givenTenant });

const usageView = output(
  "Usage",
  z.object({
    tenant: z.string(),
    name: z.string().optional().describe("as it was given, where the id is another"),
    paused: z.boolean(),
    unfinished: z.number().describe("jobs that wait or run"),
    artifactBytes: z.number(),
    artifacts: z.number(),
    ceilings: z
      .array(
        z.object({
          ceiling: ceilingName,
          used: z.number().optional().describe("absent: each gateway counts its own"),
          limit: z.number().describe("0: there is none"),
        }),
      )
      .describe("what it has of everything that has a ceiling"),
    profiles: z.array(z.string()).describe("that its jobs may name"),
    pools: z.array(z.string()),
    peers: z.array(z.string()).describe("tenants whose files its sandboxes may read, at /team"),
    sandboxes: z.array(sandboxView).describe("the most recently used thousand"),
  }),
);
const grantList = input(
  "Grants",
  z.strictObject({
    profiles: z.array(profileName).max(100).default([]),
    pools: z.array(poolName).max(100).default([]),
    peers: z
      .array(tenantId)
      .max(32)
      .default([])
      .describe("tenants whose files its sandboxes may read, at /team"),
  }),
);
const grantView = z.object({
  profiles: z.array(z.string()).describe("all that the tenant has now; `default` is every tenant's"),
  pools: z.array(z.string()),
  peers: z.array(z.string()),
});
const destroyView = z.object({
  jobs: z.array(z.string()).describe("ids of the jobs that do it, one for each sandbox"),
});

export function tenantRoutes(parts: Parts): AnyRoute[] {
  const { berth, audit } = parts;

  const scopeOf = route(
    {
      method: "GET",
      path: "/v1/tenants/:tenant/scope",
      tag: "tenants",
      summary: "The scope of a tenant's jobs that name none",
      about: "Of its layers and the fleet's; a change counts after two seconds at most.",
      access: "key",
      params,
      query: z.strictObject({ agent: agentName.optional().describe("of jobs of that agent") }),
      answers: { 200: { about: "Now", schema: z.object({ scope: defaultScope }) } },
    },
    async ({ params, query, principal }) => {
      const tenant = tenantFor(principal, params.tenant);
      return { status: 200, body: { scope: await berth.scopeOf(tenant, query.agent) } };
    },
  );

  const usage = route(
    {
      method: "GET",
      path: "/v1/tenants/:tenant",
      tag: "tenants",
      summary: "What a tenant has and uses",
      access: "key",
      cost: 50,
      params,
      answers: { 200: { about: "Now", schema: usageView } },
    },
    async ({ params, principal }) => {
      const tenant = tenantFor(principal, params.tenant);
      const { sandboxes, ...used } = await berth.tenant(tenant).holdings();
      return {
        status: 200,
        body: {
          ...used,
          sandboxes:
            principal.role === "admin"
              ? sandboxes
              : sandboxes.map(({ worker: _, home: __, ...sandbox }) => sandbox),
        },
      };
    },
  );

  const pause = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/pause",
      tag: "tenants",
      summary: "Start no more jobs of a tenant",
      about: "Running jobs go on to their end. New jobs are still accepted, and wait.",
      access: "admin",
      params,
      answers: { 204: { about: "It is paused" } },
    },
    async ({ params, request }) => {
      await berth.tenant(params.tenant).pause();
      await audit.note("tenant.paused", noted(request, params.tenant));
      return { status: 204 };
    },
  );

  const resume = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/resume",
      tag: "tenants",
      summary: "Start a paused tenant's jobs again",
      access: "admin",
      params,
      answers: { 204: { about: "The tenant's queued jobs start again" } },
    },
    async ({ params, request }) => {
      await berth.tenant(params.tenant).resume();
      await audit.note("tenant.resumed", noted(request, params.tenant));
      return { status: 204 };
    },
  );

  const destroy = route(
    {
      method: "DELETE",
      path: "/v1/tenants/:tenant",
      tag: "tenants",
      summary: "Destroy every sandbox of a tenant, workspaces included, and its snapshots",
      about: "Each after the jobs that already wait for it.",
      access: "admin",
      params,
      answers: { 202: { about: "Accepted; these jobs do it", schema: destroyView } },
    },
    async ({ params, principal, request }) => {
      await audit.note("tenant.destroyed", noted(request, params.tenant));
      const jobs: string[] = [];
      for (const { key } of await berth.sandboxes({ tenant: params.tenant, limit: 100_000 })) {
        const owner = partsOfKey(key);
        if (!owner) continue;
        const draft = draftOf({ ...owner, request: { kind: "destroy" } }, principal, { headers: {} });
        await berth.submit(draft, { detached: true }).enqueued();
        jobs.push(draft.job.id);
      }
      await berth.tenant(params.tenant).removeSnapshots();
      return { status: 202, body: { jobs } };
    },
  );

  const grants = (verb: "grant" | "revoke", action: AuditAction, about: { summary: string; more: string }) =>
    route(
      {
        method: "POST",
        path: `/v1/tenants/:tenant/${verb}`,
        tag: "tenants",
        summary: about.summary,
        about: about.more,
        access: "admin",
        params,
        body: grantList,
        answers: { 200: { about: "What it may use now", schema: grantView } },
      },
      async ({ params, body, request }) => {
        const now = await berth.tenant(params.tenant)[verb](body);
        parts.authenticator.forget();
        const names = [
          ...body.profiles.map((name) => `profile:${name}`),
          ...body.pools.map((name) => `pool:${name}`),
          ...body.peers.map((name) => `peer:${name}`),
        ];
        await audit.note(action, noted(request, [params.tenant, ...names].join(" ")));
        return {
          status: 200,
          body: { profiles: [...now.profiles], pools: [...now.pools], peers: [...now.peers] },
        };
      },
    );

  return [
    usage,
    scopeOf,
    pause,
    resume,
    destroy,
    grants("grant", "tenant.granted", {
      summary: "Let a tenant's jobs name more profiles and pools, and read peers' files",
      more: "Workers check the grants before each job. A tenant key must have been made with the same names, too.",
    }),
    grants("revoke", "tenant.ungranted", {
      summary: "Take profiles, pools and peers from a tenant",
      more: "From then on its jobs that need them end as refused, also those that wait and those of schedules. What runs goes on. A peer's files are gone from its next containers.",
    }),
  ];
}
