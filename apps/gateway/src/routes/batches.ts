import type { IncomingMessage } from "node:http";
import type { StoredBatch } from "@berth/ledger";
import { problemsOf } from "@berth/protocol";
import { nanoid } from "nanoid";
import { z } from "zod";
import { batchSchema, batchView } from "../batches/batch-view.ts";
import { type BatchLine, batchLines } from "../batches/results.ts";
import { type Part, type SentOrder, Upload } from "../batches/upload.ts";
import { parseJson, readBody } from "../http/body.ts";
import { type LineLimits, linesOf } from "../http/lines.ts";
import { LongAnswer } from "../http/long-answer.ts";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { limitsOf } from "../http/server.ts";
import { resultFor } from "../jobs/redaction.ts";
import { ownerHash, submissionHeaders } from "../jobs/submission.ts";
import { noted } from "../keys/audit.ts";
import { mayTouch, type Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { jobResult, order } from "../schemas/job.ts";
import { input, output } from "../schemas/registry.ts";

const params = z.object({
  id: z.string().regex(/^bat_[A-Za-z0-9_-]{1,60}$/, { error: "not the id of a batch" }),
});
const webhook = z
  .url({ protocol: /^https?$/ })
  .max(2_000)
  .refine((url) => !URL.canParse(url) || new URL(url).username === "", {
    error: "no names or passwords in it",
  })
  .optional()
  .describe("called when all jobs have ended; signed as the Standard Webhooks are");

const newBatch = input("NewBatch", z.strictObject({ jobs: z.array(order).min(1).max(10_000), webhook }));
const looseBatch = z.strictObject({ jobs: z.array(z.unknown()).min(1).max(10_000), webhook });

const part = z.object({
  from: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("of a part: the position of its first order in the batch, from 0"),
  more: z.stringbool().default(false).describe("further parts follow; the batch has not all its orders yet"),
});

/** Share of the body budget that one upload's unsubmitted lines may take. */
const shareOfOneUpload = 16;

const line = output(
  "BatchLine",
  z.object({
    position: z.number().describe("give it as `after` to go on behind it"),
    index: z.number().describe("which order of the batch, from 0"),
    jobId: z.string(),
    tenant: z.string().optional(),
    session: z.string().optional(),
    result: jobResult.optional(),
    refused: z.string().optional().describe("what was wrong with the order"),
    expired: z.literal(true).optional().describe("it ended more than a day ago"),
  }),
);

export function batchRoutes(parts: Parts): AnyRoute[] {
  const { batches, berth, config, audit, streams } = parts;

  const submit = route(
    {
      method: "POST",
      path: "/v1/batches",
      tag: "batches",
      summary: "Submit a batch, as JSON or as one order a line",
      about:
        "`application/x-ndjson` is taken as it comes: any number of lines, no faster than the fleet takes them. With an " +
        "Idempotency-Key an upload that broke off is sent again from its beginning and goes on where it was. It may also " +
        "come in parts, one request each, in their order: a part that broke off is sent again alone. An order that does not " +
        "fit ends as refused; the others run.",
      access: "key",
      query: z.strictObject({ webhook, ...part.shape }),
      headers: submissionHeaders,
      body: newBatch,
      raw: { types: ["application/json", "application/x-ndjson"], about: "Orders, at most 10,000 as JSON" },
      answers: { 202: { about: "All jobs of the request are accepted", schema: batchSchema } },
    },
    async ({ query: { webhook, from, more }, headers, principal, request, signal }) => {
      const limits = limitsOf(config, request);
      const isLines = /^application\/x-ndjson\b/i.test(request.headers["content-type"] ?? "");
      const whole = isLines ? undefined : read(await readBody(request.raw, limits));
      const key = headers["idempotency-key"];
      const id = `bat_${key === undefined ? nanoid() : ownerHash(principal, key)}`;
      const owner = principal.tenant ?? "";
      const batch = await batches.open(id, owner, whole?.webhook ?? webhook);
      if (batch.owner !== owner) throw new Problem("conflict", "another batch has this id");
      refuseLostPart(batch, { from, more }, key);
      const sent = whole
        ? orders(whole.jobs)
        : lines(request.raw, { ...limits, onDone: request.bodyHold.giveBack });
      const inFlightBytes = config.maxBodiesBytes / shareOfOneUpload;
      await new Upload(parts, { batch, from, more, principal, headers, inFlightBytes, signal }).run(sent);
      return {
        status: 202,
        headers: { location: `/v1/batches/${id}` },
        body: batchView(await find(id, principal)),
      };
    },
  );

  const list = route(
    {
      method: "GET",
      path: "/v1/batches",
      tag: "batches",
      summary: "Batches, the newest first",
      access: "key",
      cost: 50,
      query: z.strictObject({
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
        key: z.string().max(255).optional().describe("only the one that was made with this Idempotency-Key"),
      }),
      answers: {
        200: {
          about: "The key's own; with an admin key, all",
          schema: z.object({ batches: z.array(batchSchema) }),
        },
      },
    },
    async ({ query, principal }) => {
      const { key, limit } = query;
      const named = key === undefined ? undefined : await batches.get(`bat_${ownerHash(principal, key)}`);
      const found =
        key === undefined ? await batches.list(principal.tenant, limit) : named === undefined ? [] : [named];
      return { status: 200, body: { batches: found.map(batchView) } };
    },
  );

  const look = route(
    {
      method: "GET",
      path: "/v1/batches/:id",
      tag: "batches",
      summary: "Show the progress of a batch",
      access: "key",
      params,
      answers: { 200: { about: "The batch", schema: batchSchema } },
    },
    async ({ params, principal }) => ({ status: 200, body: batchView(await find(params.id, principal)) }),
  );

  const results = route(
    {
      method: "GET",
      path: "/v1/batches/:id/results",
      tag: "batches",
      summary: "A batch's results in the order of the ends, one a line",
      about: "Results are kept for a day after each job's end.",
      access: "key",
      params,
      query: z.strictObject({
        after: z.coerce.number().int().min(0).default(0).describe("position of the last line that was read"),
        follow: z.stringbool().default(true).describe("wait for those that are still to come"),
      }),
      answers: { 200: { about: "The lines", type: "application/x-ndjson", schema: line } },
    },
    async ({ params, query, principal, reply }) => {
      await find(params.id, principal);
      const stream = streams.open(principal, reply.raw, { comments: false });
      try {
        const answer = new LongAnswer(reply, "application/x-ndjson", stream.signal);
        const options = { ...query, signal: stream.signal };
        try {
          for await (const page of batchLines({ batches, jobs: berth.jobs }, params.id, options)) {
            await answer.write(page.map((one) => `${JSON.stringify(lineFor(principal, one))}\n`).join(""));
          }
          if (stream.signal.aborted) answer.breakOff();
          else answer.end();
        } catch {
          answer.breakOff();
        }
      } finally {
        stream.close();
      }
      return "sent";
    },
  );

  const cancel = route(
    {
      method: "DELETE",
      path: "/v1/batches/:id",
      tag: "batches",
      summary: "Cancel the jobs of a batch that have not ended",
      access: "key",
      params,
      answers: {
        200: { about: "It was over already", schema: batchSchema },
        202: { about: "Waiting and running jobs will end as cancelled", schema: batchSchema },
      },
    },
    async ({ params, principal, request }) => {
      await find(params.id, principal);
      const goesOn = await batches.cancel(params.id);
      if (goesOn) await audit.note("batch.cancelled", noted(request, params.id));
      return { status: goesOn ? 202 : 200, body: batchView(await find(params.id, principal)) };
    },
  );

  const secret = route(
    {
      method: "GET",
      path: "/v1/webhooks/secret",
      tag: "batches",
      summary: "What this key's webhooks are signed with",
      access: "key",
      answers: {
        200: {
          about: "As the Standard Webhooks' libraries take it",
          schema: z.object({ secret: z.string() }),
        },
      },
    },
    async ({ principal }) => ({
      status: 200,
      body: { secret: await parts.webhookSecrets.of(principal.tenant ?? "") },
    }),
  );

  /** A batch that the caller may not see counts as missing. */
  async function find(id: string, principal: Principal): Promise<StoredBatch> {
    const batch = await batches.get(id);
    if (!batch || !mayTouch(principal, batch.owner)) throw new Problem("not-found", "there is no such batch");
    return batch;
  }

  return [submit, list, look, results, cancel, secret];
}

/** Requires parts in order: a gap would never be filled, and the batch would never end. */
function refuseLostPart({ submitted }: StoredBatch, { from, more }: Part, key: string | undefined): void {
  if ((from > 0 || more) && key === undefined)
    throw new Problem("invalid-request", "the parts of a batch need an Idempotency-Key, the same for all");
  if (from > submitted)
    throw new Problem("conflict", `the batch has ${submitted} orders; the next part is from ${submitted}`);
}

function lineFor(principal: Principal, { result, ...one }: BatchLine): BatchLine {
  return result ? { ...one, result: resultFor(principal, result) } : one;
}

/** Parses orders one by one, like lines: an invalid order must not refuse the others. */
function read(bytes: Buffer): z.output<typeof looseBatch> {
  const parsed = looseBatch.safeParse(parseJson(bytes));
  if (parsed.success) return parsed.data;
  const problems = problemsOf(parsed.error);
  throw new Problem("invalid-request", `the batch is invalid: ${problems[0]}`, { problems });
}

/** These orders share one body, which stays in memory until the answer. */
async function* orders(jobs: readonly unknown[]): AsyncGenerator<SentOrder> {
  for (const job of jobs) yield { bytes: 0, read: () => job, done: () => {} };
}

async function* lines(message: IncomingMessage, limits: LineLimits): AsyncGenerator<SentOrder> {
  for await (const { bytes, done } of linesOf(message, limits)) {
    yield { bytes: bytes.length, read: () => parseJson(bytes), done };
  }
}
