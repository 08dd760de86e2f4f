import type { JobResult, Outcome } from "@berth/protocol";
import { Problem, type ProblemCode } from "../http/problem.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import type { Draft } from "./submission.ts";
import { resultFor } from "./told-to.ts";

/** Fires when a request has waited long enough, nobody waits any more, or the gateway stops. Undefined: it does not wait at all. */
export function patience(
  { stopping }: Pick<Parts, "stopping">,
  gone: AbortSignal,
  maxMs: number,
): AbortSignal | undefined {
  return maxMs > 0 ? AbortSignal.any([gone, stopping, AbortSignal.timeout(maxMs)]) : undefined;
}

export interface ToEndOptions {
  readonly maxMs: number;
  readonly signal: AbortSignal;
  readonly principal: Principal;
}

/** Submits a job and waits for its end; undefined when it takes longer than a request may, or the caller has gone. */
export async function runToEnd(
  parts: Pick<Parts, "submitter" | "stopping" | "waits">,
  draft: Draft,
  { maxMs, signal, principal }: ToEndOptions,
): Promise<JobResult | undefined> {
  using _ = parts.waits.take(principal);
  const outlook = await parts.submitter.submitToWait(draft, { alone: true });
  const result = await outlook(AbortSignal.any([signal, parts.stopping, AbortSignal.timeout(maxMs)]));
  return result && resultFor(principal, result);
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
