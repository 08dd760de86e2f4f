import { backoffMs, type DeadReason, faultCodes, isSuccess, type Job, type Outcome } from "@berth/protocol";

/** Refusals that another run cannot change. */
const forGood = new Set([
  ...["invalid-job", "deadline", "not-allowed"],
  ...["denied-by-rule", "tool-refused", "approval-refused", "approval-expired"],
]);
/** Faults that are the tenant's own affair: an operator would find nothing to repair. */
const ofTenant = new Set([
  ...["not-allowed", "sandbox-disabled"],
  ...["denied-by-rule", "tool-refused", "approval-refused", "approval-expired"],
]);

/** When a job with this outcome runs again. Undefined: it does not, and this is its end. */
export function retryAtMs(
  job: Pick<Job, "retry" | "attempt" | "deadlineAtMs">,
  outcome: Outcome,
  nowMs: number,
  random?: () => number,
): number | undefined {
  const { retry, attempt, deadlineAtMs = Number.POSITIVE_INFINITY } = job;
  if (!retry || attempt >= retry.attempts || !isRetried(job, outcome)) return undefined;
  const dueAtMs = nowMs + backoffMs(attempt, retry, random);
  // The next attempt would only be refused for its deadline, and would hide this outcome.
  return dueAtMs > deadlineAtMs ? undefined : dueAtMs;
}

/** Why a job that ended for good becomes a dead letter. Undefined: it does not. */
export function deadReasonOf(job: Pick<Job, "retry"> | undefined, outcome: Outcome): DeadReason | undefined {
  if (outcome.kind === "refused" && outcome.code === "invalid-job") return "unreadable";
  if (job?.retry && isRetried(job, outcome)) return "retries-exhausted";
  if (outcome.kind === "lost") return "lost";
  const isFault = outcome.kind === "refused" && faultCodes.some((code) => code === outcome.code);
  return isFault && !ofTenant.has(outcome.code) ? "fault" : undefined;
}

/** A cancellation is for all runs of a job. */
function isRetried({ retry }: Pick<Job, "retry">, outcome: Outcome): boolean {
  if (isSuccess(outcome) || outcome.kind === "cancelled") return false;
  if (outcome.kind === "refused" && forGood.has(outcome.code)) return false;
  return retry?.on.includes(outcome.kind) === true;
}
