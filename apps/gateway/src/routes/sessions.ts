import { givenSession, givenTenant, tenantOf } from "@berth/protocol";
import { z } from "zod";
import { type AnyRoute, route } from "../http/route.ts";
import { expectDone, runToEnd } from "../jobs/synchronous.ts";
import { noted } from "../keys/audit.ts";
import { refuseSessions } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { namesView } from "../schemas/job.ts";
import { output } from "../schemas/registry.ts";
import * as calls from "../schemas/sandbox-calls.ts";
import { pending, sessionDraft } from "./sandbox.ts";

const sessionView = output(
  "Session",
  z.object({
    tenant_id: z.string(),
    session_id: z.string(),
    names: namesView,
    worker: z.string().optional().describe("the worker that holds its sandbox now; for admin keys"),
    unfinished: z.number().describe("jobs that wait or run"),
    last_used_ms: z.number(),
  }),
);

const place = z.object({ tenant: givenTenant, session: givenSession });

export function sessionRoutes(parts: Parts): AnyRoute[] {
  const { berth, audit, config } = parts;

  const list = route(
    {
      method: "GET",
      path: "/v1/sandbox/sessions",
      tag: "sandbox",
      summary: "Sessions with a sandbox of their own; with a tenant key, the tenant's",
      about: "With `BERTH_GATEWAY_SESSIONS=admin`, for admin keys only.",
      access: "key",
      cost: 50,
      query: z.strictObject({ limit: z.coerce.number().int().min(1).max(10_000).default(1_000) }),
      answers: {
        200: { about: "The most recently used first", schema: z.object({ sessions: z.array(sessionView) }) },
      },
    },
    async ({ query, principal }) => {
      refuseSessions(principal, "list");
      const known = await berth.sandboxes({
        ...query,
        ...(principal.tenant === undefined ? {} : { tenant: principal.tenant }),
      });
      const sessions = known.flatMap(({ key, worker, unfinished, lastUsedMs, names }) => {
        const [, kind, session] = key.split(".");
        if (kind !== "s" || session === undefined) return [];
        const about = {
          ...{ tenant_id: tenantOf(key), session_id: session, unfinished, last_used_ms: lastUsedMs },
          ...(names === undefined ? {} : { names }),
        };
        return [worker === undefined || principal.role !== "admin" ? about : { ...about, worker }];
      });
      return { status: 200, body: { sessions } };
    },
  );

  const destroy = route(
    {
      method: "DELETE",
      path: "/v1/sandbox/sessions/:tenant/:session",
      tag: "sandbox",
      summary: "Destroy a session: its container and its workspace",
      about:
        "After the jobs that already wait for it. A later call starts with an empty workspace. With `BERTH_GATEWAY_SESSIONS=admin`, for admin keys only: a tenant key's jobs of kind `destroy` are then refused too. A schedule that was running before goes on until it is removed.",
      access: "key",
      params: place,
      answers: {
        204: { about: "It is gone" },
        202: { about: "It will be, after the jobs before it", schema: calls.stillRunning },
      },
    },
    async ({ params, principal, request, signal }) => {
      const where = { tenant_id: params.tenant, session_id: params.session };
      const draft = sessionDraft(principal, where, { kind: "destroy" }, {});
      await audit.note("session.destroyed", noted(request, `${params.tenant}/${params.session}`));
      const result = await runToEnd(parts, draft, {
        maxMs: config.maxWaitMs,
        signal,
        principal,
        mayWait: true,
      });
      if (!result) return pending(draft.job);
      expectDone(result.outcome);
      return { status: 204 };
    },
  );

  const stop = route(
    {
      method: "POST",
      path: "/v1/sandbox/sessions/:tenant/:session/stop",
      tag: "sandbox",
      summary: "End a session's container; its files stay",
      about:
        "After the jobs that already wait for it. Every process in the container is killed. A later call starts a fresh one.",
      access: "key",
      params: place,
      answers: {
        204: { about: "It has ended" },
        202: { about: "It will, after the jobs before it", schema: calls.stillRunning },
      },
    },
    async ({ params, principal, signal }) => {
      const where = { tenant_id: params.tenant, session_id: params.session };
      const draft = sessionDraft(principal, where, { kind: "stop" }, {});
      const result = await runToEnd(parts, draft, {
        maxMs: config.maxWaitMs,
        signal,
        principal,
        mayWait: true,
      });
      if (!result) return pending(draft.job);
      expectDone(result.outcome);
      return { status: 204 };
    },
  );

  const copy = route(
    {
      method: "POST",
      path: "/v1/sandbox/sessions/:tenant/:session/copy",
      tag: "sandbox",
      summary: "Write many files into a session's workspace",
      access: "key",
      params: place,
      body: calls.copyIn,
      answers: {
        200: { about: "All of them are there", schema: calls.counted },
        202: {
          about: "It takes longer than a request may; the answer names the job",
          schema: calls.stillRunning,
        },
      },
    },
    async ({ params, body, principal, signal }) => {
      const where = { tenant_id: params.tenant, session_id: params.session };
      const draft = sessionDraft(principal, where, { kind: "copy", files: body.files }, {});
      const result = await runToEnd(parts, draft, { maxMs: config.maxWaitMs, signal, principal });
      if (!result) return pending(draft.job);
      expectDone(result.outcome);
      return { status: 200, body: { count: result.value.count ?? 0 } };
    },
  );

  return [list, destroy, stop, copy];
}
