import type { IdentifiedEvent, JobView } from "@berth/client";
import { z } from "zod";
import { frameOf, tenantFrameOf } from "../events/frames.ts";
import { LongAnswer } from "../http/long-answer.ts";
import { type AnyRoute, route } from "../http/route.ts";
import { findJob } from "../jobs/own-jobs.ts";
import type { Parts } from "../parts.ts";
import { jobParams } from "./jobs.ts";

const maxPart = 2n ** 64n - 1n;

const eventId = z
  .string()
  .regex(/^\d{1,20}-\d{1,20}$/, { error: "an event's id is two numbers joined by -" })
  .refine((id) => id.split("-").every((part) => /^\d+$/.test(part) && BigInt(part) <= maxPart), {
    error: "no event has such an id",
  });

export function jobEventRoutes(parts: Parts): AnyRoute[] {
  const events = route(
    {
      method: "GET",
      path: "/v1/jobs/:id/events",
      tag: "jobs",
      summary: "What happens to a job, as it happens",
      about:
        "Server-sent events: `started`, `stdout`, `stderr`, `artifact`, `file` (`write` or `edit` wrote it), `retrying` (an attempt ended, and another follows at `dueAtMs`), `finished`. " +
        "The ids are those of the job's stream; `Last-Event-ID` resumes " +
        "behind it, also at another gateway. The stream ends after `finished`. Output is text, or base64 where it is not UTF-8; `encoding` names which.",
      access: "key",
      params: jobParams,
      query: z.strictObject({
        after: eventId.optional().describe("as Last-Event-ID, for clients that cannot send the header"),
      }),
      headers: z.object({ "last-event-id": eventId.optional() }),
      answers: {
        200: { about: "The events", type: "text/event-stream" },
        204: { about: "No event follows the given one; do not reconnect" },
      },
    },
    async ({ params, query, headers, principal, reply }) => {
      const job = await findJob(parts.berth, params.id, principal);
      const after = headers["last-event-id"] ?? query.after ?? "";
      if (after !== "" && (await parts.berth.jobs.isOverAfter(job, after))) return { status: 204 };
      const stream = parts.streams.open(principal, reply.raw);
      try {
        const answer = new LongAnswer(reply, "text/event-stream; charset=utf-8", stream.signal);
        const words = principal.role === "admin" ? frameOf : tenantFrameOf;
        await follow(answer, job, after, words, stream.signal).catch(() => {});
        // On any error the listener resumes from its last event id.
        answer.end();
      } finally {
        stream.close();
      }
      return "sent";
    },
  );
  async function follow(
    answer: LongAnswer,
    job: JobView,
    after: string,
    words: (event: IdentifiedEvent) => string,
    signal: AbortSignal,
  ): Promise<void> {
    await answer.write("retry: 1000\n\n");
    for await (const event of parts.berth.jobs.events(job, after, signal)) {
      await answer.write(words(event));
    }
  }

  return [events];
}
