import {
  agentName,
  sandboxKeyOf,
  scope,
  sessionName,
  snapshotName,
  snapshotView,
  tenantId,
} from "@berth/protocol";
import { nanoid } from "nanoid";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { draftOf } from "../jobs/submission.ts";
import { expectDone, runToEnd } from "../jobs/synchronous.ts";
import { noted } from "../keys/audit.ts";
import { type Principal, tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import type { OrderInput } from "../schemas/job.ts";
import { input, output } from "../schemas/registry.ts";

const ofTenant = z.object({ tenant: tenantId });
const params = ofTenant.extend({ name: snapshotName });
const forksMost = 1_000;

const place = {
  session: sessionName
    .optional()
    .describe("whose sandbox, if sessions have one of their own; behind its jobs"),
  agent: agentName.optional(),
  scope: scope.exclude(["shared"]).optional(),
};
const make = input(
  "SnapshotOrder",
  z.strictObject({
    name: snapshotName,
    ...place,
    ttlMs: z.number().int().positive().optional().describe("absent: it stays until it is removed"),
    replace: z.boolean().default(false).describe("replace a snapshot of that name"),
  }),
);
const restoreInto = input("RestoreOrder", z.strictObject(place));
const forkOrder = input(
  "ForkOrder",
  z.strictObject({
    count: z.number().int().min(1).max(forksMost).default(1),
    prefix: z
      .string()
      .regex(/^[a-z0-9][a-z0-9_-]{0,57}$/)
      .optional()
      .describe("of the sessions' names, before `-1`, `-2`, …; absent: a random one"),
  }),
);
const copied = output(
  "SnapshotCopy",
  snapshotView.pick({ name: true, size: true, count: true, method: true, expiresAtMs: true }),
);
const snapshotPending = output(
  "SnapshotPending",
  z.object({ jobId: z.string(), url: z.string().describe("where to look for its end") }),
);
const forkView = output(
  "Forks",
  z.object({
    forks: z.array(
      z.object({
        session: z.string().describe("of scope session; jobs that name it run in the fork"),
        sandbox: z.string(),
        job: z.string().describe("the job that makes it"),
      }),
    ),
  }),
);

/** A tenant's snapshots, for admin keys and the tenant's own. */
export function snapshotRoutes(parts: Parts): AnyRoute[] {
  const { berth, audit, config } = parts;

  const list = route(
    {
      method: "GET",
      path: "/v1/tenants/:tenant/snapshots",
      tag: "snapshots",
      summary: "A tenant's snapshots",
      access: "key",
      params: ofTenant,
      answers: { 200: { about: "By name", schema: z.object({ snapshots: z.array(snapshotView) }) } },
    },
    async ({ params, principal }) => {
      const all = await berth.tenant(tenantFor(principal, params.tenant)).snapshots();
      const shown = principal.role === "admin" ? all : all.map(({ host: _, ...rest }) => rest);
      return { status: 200, body: { snapshots: shown } };
    },
  );

  /** Runs a job about a whole workspace and waits for it. */
  async function carryOut(order: OrderInput, principal: Principal, signal: AbortSignal) {
    const draft = draftOf(order, principal, { headers: {} });
    const result = await runToEnd(parts, draft, { maxMs: config.maxWaitMs, signal, principal });
    if (!result) {
      const { id } = draft.job;
      const url = `/v1/jobs/${id}`;
      return { status: 202, headers: { location: url }, body: { jobId: id, url } } as const;
    }
    expectDone(result.outcome);
    return { status: 200, body: copied.parse(result.value) } as const;
  }

  const answers = {
    200: { about: "It is done", schema: copied },
    202: {
      about: "It takes longer than a request may; the answer names the job",
      schema: snapshotPending,
    },
  };

  const create = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/snapshots",
      tag: "snapshots",
      summary: "Save a sandbox's files under a name",
      about:
        "Runs after the jobs that wait in its session, and alone in the sandbox: jobs of other sessions end first, and background processes are killed.",
      access: "key",
      params: ofTenant,
      body: make,
      answers,
    },
    async ({ params, body: { session, agent, scope, ...request }, principal, signal }) => {
      const tenant = tenantFor(principal, params.tenant);
      const order = { tenant, session, agent, scope, request: { kind: "snapshot", ...request } } as const;
      return carryOut(order, principal, signal);
    },
  );

  const restore = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/snapshots/:name/restore",
      tag: "snapshots",
      summary: "Make a sandbox's files those of a snapshot",
      about: "Everything else in its workspace goes.",
      access: "key",
      params,
      body: restoreInto,
      answers,
    },
    async ({ params, body, principal, signal }) => {
      const tenant = tenantFor(principal, params.tenant);
      const request = { kind: "restore", name: params.name } as const;
      return carryOut({ tenant, ...body, request }, principal, signal);
    },
  );

  const fork = route(
    {
      method: "POST",
      path: "/v1/tenants/:tenant/snapshots/:name/fork",
      tag: "snapshots",
      summary: "Make new sandboxes that start with a snapshot's files",
      about:
        "Each is a session with a sandbox of its own, and stays until it is destroyed. A job with `forkOf` needs no call before it.",
      access: "key",
      cost: 10,
      params,
      body: forkOrder,
      answers: { 202: { about: "Accepted; these jobs make them", schema: forkView } },
    },
    async ({ params, body: { count, prefix = `${params.name.slice(0, 40)}-${shortId()}` }, principal }) => {
      const tenant = tenantFor(principal, params.tenant);
      const forks: z.output<typeof forkView>["forks"] = [];
      for (let index = 1; index <= count; index++) {
        const session = sessionName.parse(`${prefix}-${index}`);
        const request = { kind: "list", maxItems: 1 } as const;
        const order = { tenant, scope: "session", session, forkOf: params.name, request } as const;
        const draft = draftOf(order, principal, { headers: {} });
        await berth.submit(draft, { detached: true }).enqueued();
        forks.push({ session, sandbox: sandboxKeyOf(draft.job), job: draft.job.id });
      }
      return { status: 202, body: { forks } };
    },
  );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/tenants/:tenant/snapshots/:name",
      tag: "snapshots",
      summary: "Remove a snapshot",
      about: "Its forks stay.",
      access: "key",
      params,
      answers: { 204: { about: "It is removed; its files go within seconds" } },
    },
    async ({ params, principal, request }) => {
      const tenant = tenantFor(principal, params.tenant);
      if (!(await berth.tenant(tenant).removeSnapshot(params.name)))
        throw new Problem("not-found", `${tenant} has no snapshot ${params.name}`);
      await audit.note("snapshot.removed", noted(request, `${tenant} ${params.name}`));
      return { status: 204 };
    },
  );

  return [list, create, restore, fork, remove];
}

function shortId(): string {
  return nanoid(8)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "0");
}
