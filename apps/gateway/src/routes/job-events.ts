import { once } from "node:events";
import { z } from "zod";
import { frameOf } from "../events/frames.ts";
import { type AnyRoute, route } from "../http/route.ts";
import type { Parts } from "../parts.ts";
import { jobParams } from "./jobs.ts";

/** A listener that takes nothing for this long has gone, or means harm. */
const stallMs = 60_000;
const maxPart = 2n ** 64n - 1n;

const eventId = z
  .string()
  .regex(/^\d{1,20}-\d{1,20}$/, { error: "an event's id is two numbers joined by -" })
  .refine((id) => id.split("-").every((part) => /^\d+$/.test(part) && BigInt(part) <= maxPart), {
    error: "no event has such an id",
  });

export function jobEventRoutes(parts: Parts): AnyRoute[] {
  const follow = route(
    {
      method: "GET",
      path: "/v1/jobs/:id/events",
      tag: "jobs",
      summary: "What happens to a job, as it happens",
      about:
        "Server-sent events: `started`, `stdout`, `stderr`, `artifact`, `finished`. The ids are those of the job's stream; `Last-Event-ID` resumes " +
        "behind it, also at another gateway. The stream ends after `finished`. Output is text, or base64 where it is not UTF-8; `encoding` says which.",
      access: "key",
      params: jobParams,
      query: z.strictObject({
        after: eventId.optional().describe("as Last-Event-ID, for those who cannot send it"),
      }),
      headers: z.object({ "last-event-id": eventId.optional() }),
      answers: {
        200: { about: "The events", type: "text/event-stream" },
        204: { about: "The last event has been seen; do not come back" },
      },
    },
    async ({ params, query, headers, principal, reply }) => {
      const job = await parts.jobs.find(params.id, principal);
      const after = headers["last-event-id"] ?? query.after ?? "";
      if (after !== "" && (await parts.jobs.isOverAfter(job, after))) return { status: 204 };
      const stream = parts.streams.open(principal, reply.raw);
      try {
        reply.hijack();
        for (const [name, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(name, value);
        }
        reply.raw.writeHead(200, {
          "content-type": "text/event-stream; charset=utf-8",
          "x-accel-buffering": "no",
        });
        reply.raw.write("retry: 1000\n\n");
        for await (const event of parts.reader.follow(job.key, job.id, after, stream.signal)) {
          if (reply.raw.write(frameOf(event))) continue;
          const stalled = AbortSignal.timeout(stallMs);
          await once(reply.raw, "drain", { signal: AbortSignal.any([stream.signal, stalled]) });
        }
      } catch (error) {
        // Once the answer has begun, all that can be said is its end; the listener resumes from its last id.
        if (!reply.raw.headersSent) throw error;
      } finally {
        stream.close();
        if (reply.raw.writableNeedDrain) reply.raw.destroy();
        else if (reply.raw.headersSent) reply.raw.end();
      }
      return "sent";
    },
  );
  return [follow];
}
