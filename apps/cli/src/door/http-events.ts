import { setTimeout as sleep } from "node:timers/promises";
import type { JobResult } from "@berth/protocol";
import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";
import { Complaint } from "../complaint.ts";
import type { IdentifiedEvent } from "../door.ts";
import { type HttpCalls, path } from "./http-call.ts";

const firstPauseMs = 200;
const longestPauseMs = 2_000;
/** Time that a gateway has to restart. Each event resets it. */
const mostFailures = 20;

/** A job's events until its end. Resumes a broken connection after the last event, so that no event comes twice. */
export async function* httpEvents(
  calls: HttpCalls,
  jobId: string,
  after = "",
  signal?: AbortSignal,
): AsyncGenerator<IdentifiedEvent> {
  let last = after;
  let failures = 0;
  for (;;) {
    try {
      const headers = last === "" ? {} : { "last-event-id": last };
      const { body, status } = await calls.response("GET", path`/v1/jobs/${jobId}/events`, {
        headers,
        repeatable: false,
        ...(signal ? { signal } : {}),
      });
      // No event follows the last one.
      if (status === 204) return;
      const events = body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      for await (const event of events ?? []) {
        last = event.id ?? last;
        const read = readEvent(last, event);
        failures = 0;
        if (read) yield read;
        if (read?.type === "finished") return;
      }
      failures++;
    } catch (error) {
      if (
        calls.closed ||
        signal?.aborted ||
        (error instanceof Complaint && error.code !== "gateway-unreachable")
      )
        throw error;
      if (++failures > mostFailures) throw error;
    }
    await sleep(Math.min(firstPauseMs * 2 ** Math.min(failures, 6), longestPauseMs), undefined, { signal });
  }
}

/** Undefined for an event type that this version does not know. */
function readEvent(id: string, { event: type, data }: EventSourceMessage): IdentifiedEvent | undefined {
  const { text = "", encoding = "utf8", ...more } = JSON.parse(data);
  switch (type) {
    case "stdout":
    case "stderr":
      return { id, type, bytes: Buffer.from(text, encoding === "base64" ? "base64" : "utf8") };
    case "started":
    case "retrying":
      return { id, ...more, type };
    case "artifact":
      return { id, type, artifact: more.artifact };
    case "file":
      return { id, type, file: more.file };
    case "finished":
      return { id, type, result: more.result as JobResult };
    default:
      return undefined;
  }
}
