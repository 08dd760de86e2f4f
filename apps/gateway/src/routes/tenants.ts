import { redisKeys, type SandboxKey, tenantId } from "@berth/protocol";
import { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import { draftOf } from "../jobs/submission.ts";
import { noted } from "../keys/audit.ts";
import { tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";
import { sandboxView } from "../schemas/sandbox.ts";

const params = z.object({ tenant: tenantId });

const usageView = output(
  "Usage",
  z.object({
    tenant: z.string(),
    paused: z.boolean(),
    unfinished: z.number().describe("jobs that wait or run"),
    artifactBytes: z.number(),
    artifacts: z.number(),
    sandboxes: z.array(sandboxView).describe("the most recently used thousand"),
  }),
);
const destroyView = z.object({
  jobs: z.array(z.string()).describe("ids of the jobs that do it, one for each sandbox"),
});

export function tenantRoutes(parts: Parts): AnyRoute[] {
  const { berth, audit, redis, submitter } = parts;

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
      const sandboxes = await berth.sandboxes({ tenant });
      const [bytes, count] = await redis.hmget(redisKeys.artifactUsage, tenant, `${tenant}/count`);
      return {
        status: 200,
        body: {
          tenant,
          paused: (await redis.sismember(redisKeys.paused, tenant)) === 1,
          unfinished: sandboxes.reduce((sum, { unfinished }) => sum + unfinished, 0),
          artifactBytes: Number(bytes ?? 0),
          artifacts: Number(count ?? 0),
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
      summary: "Begin nothing more of a tenant",
      about: "What runs ends. Its jobs are still accepted, and wait.",
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
      summary: "Let a tenant's jobs begin again",
      access: "admin",
      params,
      answers: { 204: { about: "What waits is offered" } },
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
      summary: "Destroy every sandbox of a tenant, workspaces included",
      about: "Each behind whatever of it waits already.",
      access: "admin",
      params,
      answers: { 202: { about: "These jobs do it", schema: destroyView } },
    },
    async ({ params, principal, request }) => {
      await audit.note("tenant.destroyed", noted(request, params.tenant));
      const jobs: string[] = [];
      for (const { key } of await berth.sandboxes({ tenant: params.tenant, limit: 100_000 })) {
        const place = placeOf(key);
        if (!place) continue;
        const draft = draftOf({ ...place, request: { kind: "destroy" } }, principal, { headers: {} });
        await submitter.submit(draft);
        jobs.push(draft.job.id);
      }
      return { status: 202, body: { jobs } };
    },
  );

  return [usage, pause, resume, destroy];
}

/** The tenant, session or agent that a sandbox key was made of; undefined for the sandbox that all share. */
function placeOf(key: SandboxKey) {
  const [name = "", kind, of = ""] = key.split(".");
  const tenant = tenantId.parse(name);
  if (kind === undefined) return { tenant, scope: "tenant" } as const;
  if (kind === "s") return { tenant, scope: "session", session: of } as const;
  return kind === "a" ? ({ tenant, scope: "agent", agent: of } as const) : undefined;
}
