import type { EnqueuedJob } from "@berth/client";
import { BoundedWait, type Job, type JobResult, jobId, sandboxKeyOf, tenantId } from "@berth/protocol";
import { z } from "zod";
import { InOrder } from "../batches/in-order.ts";
import { mapInTurns } from "../http/parse-input.ts";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { afterWait, findJob, viewFor } from "../jobs/own-jobs.ts";
import { whyFor } from "../jobs/redaction.ts";
import { draftOf, idempotentId, type SubmissionHeaders, submissionHeaders } from "../jobs/submission.ts";
import { submitTraced } from "../jobs/submit-traced.ts";
import { ended, waitSignal } from "../jobs/synchronous.ts";
import { type Principal, tenantFor } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { type JobView, jobView, maxOrders, type Order, order, orders, whyView } from "../schemas/job.ts";

export const jobParams = z.object({ id: jobId });

/** Jobs of one request being submitted at once; jobs of one sandbox go one after another. */
const submittedAtOnce = 32;

const answer = z.union([jobView, z.array(jobView)]).describe("as it was asked: one job, or as many");

export function jobRoutes(parts: Parts): AnyRoute[] {
  const { berth } = parts;
  const waitQuery = z.strictObject({
    wait: z.coerce
      .number()
      .min(0)
      .max(parts.config.maxWaitMs / 1_000)
      .default(0)
      .describe("seconds to wait for the result; a job that has not ended by then is answered as it is"),
  });

  const submit = route(
    {
      method: "POST",
      path: "/v1/jobs",
      tag: "jobs",
      summary: "Submit one job or up to a thousand",
      about: "All are checked before any is accepted. Jobs of a session run in the order they were given.",
      access: "key",
      query: waitQuery,
      headers: submissionHeaders,
      body: orders,
      items: { schema: order, max: maxOrders },
      answers: {
        200: { about: "All finished while this request waited", schema: answer },
        202: { about: "Accepted; Location has the job", schema: answer },
      },
    },
    async ({ body, query, headers, principal, signal }) => {
      const many = Array.isArray(body) ? body : [body];
      const drafts = await makeDrafts(many, principal, headers, Array.isArray(body));
      // Check every job before submitting any: a refused request has no effect.
      using _ = query.wait > 0 ? parts.waits.take(principal, drafts.length) : undefined;
      using wait = new BoundedWait();
      const options = query.wait > 0 ? { signal: wait.signal } : { detached: true };
      const alone = drafts.length === 1;
      const submitted = new Map<string, EnqueuedJob>();
      const jobs: Job[] = [];
      const work = new InOrder(submittedAtOnce);
      for (const unplaced of drafts) {
        const draft = await berth.placed(unplaced);
        jobs.push(draft.job);
        await work.add(sandboxKeyOf(draft.job), async () => {
          const job = alone
            ? await submitTraced(parts, draft, options)
            : await berth.submit(draft, options).enqueued();
          submitted.set(job.id, job);
        });
      }
      await work.finish();
      const until = waitSignal(parts, signal, query.wait * 1_000);
      if (until) wait.endWith(until);
      const views = await Promise.all(
        jobs.map(async (job) => {
          const enqueued = until && submitted.get(job.id);
          const result = enqueued && (await ended(enqueued.result, wait.signal));
          return result ? endedView(job, enqueued, result, principal) : viewed(job.id, principal);
        }),
      );
      const status = views.every(({ state }) => state === "finished") ? 200 : 202;
      const [first] = views;
      if (Array.isArray(body) || !first) return { status, body: views };
      return { status, headers: { location: `/v1/jobs/${first.id}` }, body: first };
    },
  );

  const list = route(
    {
      method: "GET",
      path: "/v1/jobs",
      tag: "jobs",
      summary: "Jobs that have not ended, the oldest first; with a tenant key, the tenant's",
      access: "key",
      cost: 50,
      query: z.strictObject({
        tenant: tenantId.optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      answers: { 200: { about: "Of the oldest ten thousand", schema: z.object({ jobs: z.array(jobView) }) } },
    },
    async ({ query, principal }) => {
      const tenant = query.tenant ?? principal.tenant;
      if (tenant !== undefined) tenantFor(principal, tenant);
      const jobs = await berth.jobs.list({ tenant, limit: query.limit });
      return { status: 200, body: { jobs: jobs.map((job) => viewFor(principal, job)) } };
    },
  );

  const look = route(
    {
      method: "GET",
      path: "/v1/jobs/:id",
      tag: "jobs",
      summary: "One job, with its result once it has one",
      access: "key",
      params: jobParams,
      query: waitQuery,
      answers: { 200: { about: "The job", schema: jobView } },
    },
    async ({ params, query, principal, signal }) => {
      const until = waitSignal(parts, signal, query.wait * 1_000);
      using _ = until && parts.waits.take(principal);
      const job = await findJob(berth, params.id, principal);
      if (!until || job.result) return { status: 200, body: viewFor(principal, job) };
      const result = await ended(berth.jobs.result(job, until), until);
      return { status: 200, body: viewFor(principal, await afterWait(berth, job, result)) };
    },
  );

  const cancel = route(
    {
      method: "DELETE",
      path: "/v1/jobs/:id",
      tag: "jobs",
      summary: "Cancel a job, waiting or running",
      about: "The result is then `cancelled`. A job that has ended stays as it ended.",
      access: "key",
      params: jobParams,
      answers: {
        200: { about: "It has ended: before, or by this request", schema: jobView },
        202: { about: "It will end as cancelled", schema: jobView },
      },
    },
    async ({ params, principal }) => {
      const job = await findJob(berth, params.id, principal);
      await berth.cancel(job.id);
      const view = viewFor(principal, await afterWait(berth, job, undefined));
      return { status: view.state === "finished" ? 200 : 202, body: view };
    },
  );

  const why = route(
    {
      method: "GET",
      path: "/v1/jobs/:id/why",
      tag: "jobs",
      summary: "Why a job waits, or how it ended",
      access: "key",
      params: jobParams,
      answers: { 200: { about: "The reasons, the most important first", schema: whyView } },
    },
    async ({ params, principal }) => {
      const job = await findJob(berth, params.id, principal);
      return { status: 200, body: whyFor(principal, await berth.why(job.id)) };
    },
  );

  async function makeDrafts(
    many: readonly Order[],
    principal: Principal,
    headers: SubmissionHeaders,
    isList: boolean,
  ) {
    const key = headers["idempotency-key"];
    if (key !== undefined && many.some(({ id }) => id !== undefined)) {
      throw new Problem("invalid-request", "give either an Idempotency-Key or ids, not both");
    }
    // Validate before storing the key, so that an invalid request can be corrected and sent again.
    const drafts = await mapInTurns(many, (one) => draftOf(one, principal, { headers }));
    if (key === undefined) return drafts;
    const base = await idempotentId(parts.redis, key, { principal, tenant: drafts[0]?.job.tenant }, many);
    return drafts.map((draft, index) => draft.withId(isList ? `ik_${base}-${index}` : `ik_${base}`));
  }

  async function viewed(id: string, principal: Principal): Promise<JobView> {
    return viewFor(principal, await findJob(berth, id, principal));
  }

  /** The result of a job that this request submitted needs no read. If the id was known before, its record may differ, so read it. */
  async function endedView(
    { id, tenant, session, names, request: { kind } }: Job,
    { key: sandbox, acceptedAtMs }: EnqueuedJob,
    result: JobResult,
    principal: Principal,
  ): Promise<JobView> {
    if (acceptedAtMs === undefined)
      return viewFor(principal, await afterWait(berth, await findJob(berth, id, principal), result));
    const state = "finished";
    const given = names === undefined ? {} : { names };
    return viewFor(principal, { id, tenant, session, ...given, kind, sandbox, state, acceptedAtMs, result });
  }

  return [submit, list, look, cancel, why];
}
