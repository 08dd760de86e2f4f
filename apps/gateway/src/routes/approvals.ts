import { isFault, jobId, tenantId } from "@berth/protocol";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { noted } from "../keys/audit.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";

const params = z.object({ id: jobId });

const approvalView = output(
  "Approval",
  z.object({
    jobId: z.string(),
    tenant: z.string(),
    sandbox: z.string(),
    session: z.string(),
    agent: z.string().optional(),
    kind: z.string(),
    preview: z
      .string()
      .describe("what it would run and with what, its secrets masked; at most 2,000 characters"),
    digest: z.string().describe("of all that it would run; an approval names it"),
    askedAtMs: z.number(),
    expiresAtMs: z.number().describe("then it ends as refused"),
  }),
);
const wholeView = output(
  "WholeApproval",
  approvalView.extend({ whole: z.string().describe("as `preview`, up to 256 KiB") }),
);
const decision = z.object({ jobId: z.string() });
const digest = z.string().min(1).max(64);

/** Jobs that a profile's rule holds back until an administrator approves them. */
export function approvalRoutes({ berth, audit }: Parts): AnyRoute[] {
  const by = (request: FastifyRequest) => `key ${request.principal.id}`;

  const list = route(
    {
      method: "GET",
      path: "/v1/approvals",
      tag: "jobs",
      summary: "Jobs that wait for an approval",
      access: "admin",
      query: z.strictObject({
        tenant: tenantId.optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      answers: {
        200: { about: "The first to expire first", schema: z.object({ approvals: z.array(approvalView) }) },
      },
    },
    async ({ query: { tenant, limit } }) => {
      const approvals = await berth.approvals.list({ limit, ...(tenant === undefined ? {} : { tenant }) });
      return { status: 200, body: { approvals } };
    },
  );

  const show = route(
    {
      method: "GET",
      path: "/v1/approvals/:id",
      tag: "jobs",
      summary: "The whole of what a job would run that waits for an approval",
      access: "admin",
      params,
      answers: { 200: { about: "It waits", schema: wholeView } },
    },
    async ({ params: { id } }) => {
      const body = await berth.approvals.get(id);
      if (!body) throw new Problem("not-found", `the job ${id} waits for no approval`);
      return { status: 200, body };
    },
  );

  const approve = route(
    {
      method: "POST",
      path: "/v1/approvals/:id/approve",
      tag: "jobs",
      summary: "Let a job run that waits for an approval",
      access: "admin",
      params,
      body: z.strictObject({
        digest: digest.describe("of what was seen; refused with 409 when the job would run something else"),
      }),
      answers: { 200: { about: "It runs when its turn comes", schema: decision } },
    },
    async ({ params: { id }, body, request }) => {
      await orNotFound(berth.approvals.approve({ jobId: id, ...body }, { by: by(request) }));
      await audit.note("job.approved", noted(request, id));
      return { status: 200, body: { jobId: id } };
    },
  );

  const refuse = route(
    {
      method: "POST",
      path: "/v1/approvals/:id/refuse",
      tag: "jobs",
      summary: "End a job as refused that waits for an approval",
      access: "admin",
      params,
      body: z.strictObject({
        reason: z.string().max(1_000).default("").describe("the tenant reads it"),
        digest: digest
          .optional()
          .describe("of what was seen; when absent, the job is refused with any content"),
      }),
      answers: { 200: { about: "It ends", schema: decision } },
    },
    async ({ params: { id }, body: { reason, digest: seen }, request }) => {
      const what = { jobId: id, ...(seen === undefined ? {} : { digest: seen }) };
      await orNotFound(berth.approvals.refuse(what, { by: by(request), reason }));
      await audit.note("job.refused", noted(request, id));
      return { status: 200, body: { jobId: id } };
    },
  );

  return [list, show, approve, refuse];
}

async function orNotFound(deciding: Promise<void>): Promise<void> {
  try {
    await deciding;
  } catch (error) {
    if (!isFault(error, "not-waiting-for-approval")) throw error;
    throw new Problem(error.context.state === "unknown" ? "not-found" : "conflict", error.message);
  }
}
