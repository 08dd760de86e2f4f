import type { CheckedOrder } from "@berth/client";
import { BoundedWait, type JobResult, type Outcome } from "@berth/protocol";
import { Problem, type ProblemCode } from "../http/problem.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { submitTraced } from "./submit-traced.ts";
import { resultFor } from "./told-to.ts";

/** Fires when a request has waited long enough, its connection is closed, or the gateway stops. Undefined: it does not wait at all. */
export function patience(
  { stopping }: Pick<Parts, "stopping">,
  gone: AbortSignal,
  maxMs: number,
): AbortSignal | undefined {
  return maxMs > 0 ? new BoundedWait().endWith(gone, stopping).endAfter(maxMs).signal : undefined;
}

export interface ToEndOptions {
  readonly maxMs: number;
  readonly signal: AbortSignal;
  readonly principal: Principal;
}

/** Submits a job and waits for its end; undefined when it takes longer than a request may, or the caller has gone. */
export async function runToEnd(
  parts: Pick<Parts, "berth" | "tracing" | "stopping" | "waits">,
  order: CheckedOrder,
  { maxMs, signal, principal }: ToEndOptions,
): Promise<JobResult | undefined> {
  using _ = parts.waits.take(principal);
  using wait = new BoundedWait();
  const job = await submitTraced(parts, order, { signal: wait.signal });
  wait.endWith(signal, parts.stopping).endAfter(maxMs);
  const result = await ended(job.result, wait.signal);
  return result && resultFor(principal, result);
}

/** A job's result; undefined when the signal came first. */
export async function ended(result: Promise<JobResult>, until: AbortSignal): Promise<JobResult | undefined> {
  try {
    return await result;
  } catch (error) {
    if (until.aborted) return undefined;
    throw error;
  }
}

const refusals: Readonly<Record<string, ProblemCode>> = {
  "not-found": "not-found",
  exists: "conflict",
  "not-empty": "conflict",
  mismatch: "precondition-failed",
};

/** A file operation either did what it should, or the caller is told why not, with the refusal's own words. */
export function expectDone(outcome: Outcome): void {
  switch (outcome.kind) {
    case "done":
    case "exited":
      return;
    case "refused":
      throw new Problem(refusals[outcome.code] ?? "refused", `${outcome.code}: ${outcome.message}`);
    case "cancelled":
      throw new Problem("conflict", `cancelled: ${outcome.reason}`);
    case "lost":
      throw new Problem("conflict", `lost: ${outcome.message}; whether it was done is not known`);
    default:
      throw new Problem("refused", `it ended as ${outcome.kind}`);
  }
}
