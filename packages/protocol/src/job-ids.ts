import { z } from "zod";
import type { TenantId } from "./ids.ts";

/** Keys that BullMQ keeps beside a queue's jobs: a job with such an id would overwrite one. */
const bullKeys = new Set([
  ...["active", "completed", "de", "delayed", "events", "failed", "id", "limiter", "marker", "meta"],
  ...["metrics", "paused", "pc", "prioritized", "priority", "repeat", "stalled", "stalled-check", "wait"],
  "waiting-children",
]);

/**
 * A job id as callers choose it. BullMQ accepts no colon, and no id of digits only. What the fleet adds to ids (`.`, `@`,
 * `-redrive-<n>`) cannot be chosen, so no caller can take the id of a scheduled or re-driven job.
 */
export const chosenJobId = z
  .string()
  .regex(/^(?!\d+$)[A-Za-z0-9_-]{1,128}$/, {
    error: "a job id is 1 to 128 letters, digits, - and _, and not digits alone",
  })
  .refine((id) => !bullKeys.has(id), { error: "this job id is a name that the queue uses itself" })
  .refine((id) => !/-redrive-\d+$/.test(id), {
    error: "job ids that end in -redrive-<n> are the fleet's own",
  });

/** Any job's id: `[<tenant>.]<chosen>[@<due time>][-redrive-<n>]`. */
export const jobId = z
  .string()
  .regex(/^(?!\d+$)(?:[a-z0-9][a-z0-9_-]{0,62}\.)?[A-Za-z0-9_-]{1,128}(?:@\d{1,16})?(?:-redrive-\d{1,9})?$/, {
    error: "a job id is 1 to 128 letters, digits, - and _, and not digits alone",
  })
  .brand<"JobId">();
export type JobId = z.infer<typeof jobId>;

/**
 * The id of something that a tenant named through its own key. No other tenant can write it, because names have no dot. Callers that may
 * act for every tenant (Redis clients, admin keys) keep the ids they choose.
 */
export function ownedId(tenant: TenantId, chosen: string): string {
  return `${tenant}.${chosen}`;
}

/** The same due time always yields the same id, so that a run cannot happen twice. */
export function scheduledJobId(schedule: string, dueMs: number): string {
  return `${schedule}@${dueMs}`;
}
