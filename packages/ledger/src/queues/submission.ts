import { Fault, isFault, type Job, type SubmittedJob } from "@berth/protocol";
import { redisFault } from "@berth/redis";
import { passes } from "../events/redis-errors.ts";
import type { Schedule } from "../schedule/schedule.ts";

/** How far a job got while it is being submitted. */
export type Accepted = NonNullable<SubmittedJob["accepted"]>;

/** Faults of Redis. Any other fault, such as a full sandbox or a taken id, means that the job was not accepted. */
const ofRedis = [
  "redis-unreachable",
  "redis-unauthorized",
  "redis-refused",
  "redis-full",
  "redis-unreplicated",
] as const;
type RedisFaultCode = (typeof ofRedis)[number];

/** The fault of a submission that failed: with the job's id, and whether the fleet may have the job. */
export function submissionFault(error: unknown, jobId: string, accepted: Accepted): unknown {
  const refusal = error instanceof Error && error.name === "ReplyError";
  const fault = refusal ? redisFault("submitting a job", error) : error;
  if (!isRedisFault(fault)) return fault;
  const context = { ...fault.context, jobId, accepted } as Fault<RedisFaultCode>["context"];
  return new Fault<RedisFaultCode>(fault.code, context, { cause: fault.cause ?? fault });
}

/** Whether submitting the same job again within a few seconds may succeed. A Redis that is full is left to the caller. */
export function isBriefOutage(error: unknown): boolean {
  return isRedisFault(error) && error.code !== "redis-full" && passes(error);
}

function isRedisFault(error: unknown): error is Fault<RedisFaultCode> {
  return ofRedis.some((code) => isFault(error, code));
}

/** Accepts a job that is to run later, as `Schedule.accept`. */
export async function acceptForLater(
  schedule: Schedule,
  job: Job,
  dueAtMs: number,
): Promise<"added" | "known"> {
  try {
    return await schedule.accept(job, dueAtMs);
  } catch (error) {
    // A full Redis refuses before it makes any part of a change.
    throw submissionFault(error, job.id, isFault(error, "redis-full") ? "no" : "unknown");
  }
}
