import { Fault, type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { eventsOf } from "./event-channels.ts";
import { passes, pause } from "./redis-errors.ts";
import type { StreamEntry } from "./stream-tail.ts";

const retryMs = 100;

/** The last entry of a job's events; undefined if there is none, or the signal fired. Waits for a Redis that is away. */
export async function lastEntry(
  commands: Redis,
  stream: string,
  signal: AbortSignal,
): Promise<StreamEntry | undefined> {
  while (!signal.aborted) {
    try {
      const [last] = await commands.xrevrangeBuffer(stream, "+", "-", "COUNT", 1);
      return last;
    } catch (error) {
      if (!passes(error)) throw error;
      await pause(retryMs, signal);
    }
  }
  return undefined;
}

/** The whole result of a job that has ended. Throws `job-unknown` when Redis no longer has it. */
export async function readResult(
  commands: Redis,
  key: SandboxKey,
  jobId: string,
  signal: AbortSignal,
): Promise<JobResult> {
  const last = await lastEntry(commands, redisKeys.events(key, jobId), signal);
  if (signal.aborted) throw new Fault("aborted", { operation: "reading a job's result" });
  const event = last && eventsOf([last])[0];
  if (event?.type === "finished") return event.result;
  throw new Fault("job-unknown", { jobId });
}
