import { Fault, type JobResult } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { type EventChannels, eventsOf } from "./event-channels.ts";
import type { IdentifiedEvent } from "./job-events.ts";
import { lastEntry } from "./last-event.ts";
import { compareIds } from "./stream-tail.ts";

/** Waits for a job's end in its own stream: reads the last entry once, then follows the stream. */
export async function watchResult(
  commands: Redis,
  channels: EventChannels,
  stream: string,
  signal: AbortSignal,
): Promise<JobResult> {
  const { promise, resolve, reject } = Promise.withResolvers<JobResult>();
  const listener = {
    take(events: readonly IdentifiedEvent[]) {
      for (const event of events) if (event.type === "finished") resolve(event.result);
    },
    fail: reject,
  };
  const onAbort = () => reject(new Fault("aborted", { operation: "waiting for a job's end" }));
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  try {
    const joined = async () => {
      while (!signal.aborted) {
        const shared = channels.position(stream) ?? "0-0";
        const last = await lastEntry(commands, stream, signal);
        const event = last && eventsOf([last])[0];
        if (event?.type === "finished") return resolve(event.result);
        const seen = last?.[0].toString() ?? "0-0";
        const position = compareIds(seen, shared) < 0 ? shared : seen;
        if (!signal.aborted && channels.join(stream, position, listener)) return;
      }
    };
    joined().catch(reject);
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    channels.leave(stream, listener);
  }
}
