import { isFault, jobId } from "@berth/protocol";
import { z } from "zod";
import { Problem } from "../http/problem.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { noted } from "../keys/audit.ts";
import type { Parts } from "../parts.ts";
import { output } from "../schemas/registry.ts";

const params = z.object({ id: jobId });

const letterView = output(
  "DeadLetter",
  z.looseObject({
    jobId: z.string(),
    sandboxKey: z.string(),
    reason: z.string(),
    outcome: z.looseObject({ kind: z.string() }),
    atMs: z.number(),
    worker: z.string(),
    cursor: z.string().describe("give it as `after` for the page behind it"),
  }),
);

export function deadLetterRoutes({ berth, audit }: Parts): AnyRoute[] {
  const list = route(
    {
      method: "GET",
      path: "/v1/dead-letters",
      tag: "fleet",
      summary: "Dead letters: failed jobs that an operator should look at",
      access: "admin",
      query: z.strictObject({
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
        after: z
          .string()
          .regex(/^\d{1,15}\.[\w.@-]{1,260}$/, { error: "not a letter's cursor" })
          .optional(),
      }),
      answers: { 200: { about: "The newest first", schema: z.object({ letters: z.array(letterView) }) } },
    },
    async ({ query: { limit, after } }) => {
      const letters = await berth.deadLetters.list({ limit, ...(after === undefined ? {} : { after }) });
      return { status: 200, body: { letters: letters.map(({ job: _, ...letter }) => letter) } };
    },
  );

  const redrive = route(
    {
      method: "POST",
      path: "/v1/dead-letters/:id/redrive",
      tag: "fleet",
      summary: "Run a dead letter's job again, under a new id",
      access: "admin",
      params,
      answers: { 202: { about: "Accepted", schema: z.object({ jobId: z.string() }) } },
    },
    async ({ params, request }) => {
      try {
        const again = await berth.deadLetters.redrive(params.id);
        await audit.note("dead-letter.redriven", noted(request, params.id));
        return { status: 202, headers: { location: `/v1/jobs/${again}` }, body: { jobId: again } };
      } catch (error) {
        if (!isFault(error, "not-redrivable")) throw error;
        throw new Problem(error.context.reason === "unreadable" ? "refused" : "not-found", error.message);
      }
    },
  );

  const remove = route(
    {
      method: "DELETE",
      path: "/v1/dead-letters/:id",
      tag: "fleet",
      summary: "Remove a dead letter",
      access: "admin",
      params,
      answers: { 204: { about: "It is gone" } },
    },
    async ({ params, request }) => {
      if (!(await berth.deadLetters.remove(params.id))) {
        throw new Problem("not-found", "there is no dead letter of that job");
      }
      await audit.note("dead-letter.removed", noted(request, params.id));
      return { status: 204 };
    },
  );

  return [list, redrive, remove];
}
