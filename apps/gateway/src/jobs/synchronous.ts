import {
  type CheckedOrder,
  cancelledUnbegun,
  type EnqueuedJob,
  type NoSandbox,
  type Why,
  whenNoSandbox,
} from "@berth/client";
import { BoundedWait, type JobResult, type Outcome } from "@berth/protocol";
import { Problem, type ProblemCode } from "../http/problem.ts";
import type { Principal } from "../keys/principal.ts";
import type { Parts } from "../parts.ts";
import { resultFor, whyFor } from "./redaction.ts";
import { submitTraced } from "./submit-traced.ts";

/** Fires when the wait is over, the connection closes, or the gateway stops. Undefined: do not wait. */
export function waitSignal(
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
  /** Keep the job queued while no worker can start its sandbox; it continues after the "still running" answer. */
  readonly mayWait?: boolean;
}

/** Wait for the end of a cancelled job: within this time it ends, or a worker has started it after all. */
const cancelledMs = 5_000;

/** Submits a job and waits for its end; undefined if the wait is over first or the caller disconnects. */
export async function runToEnd(
  parts: Pick<Parts, "berth" | "config" | "tracing" | "stopping" | "waits">,
  order: CheckedOrder,
  { maxMs, signal, principal, mayWait = false }: ToEndOptions,
): Promise<JobResult | undefined> {
  using _ = parts.waits.take(principal);
  using wait = new BoundedWait();
  const job = await submitTraced(parts, order, { signal: wait.signal });
  wait.endWith(signal, parts.stopping).endAfter(maxMs);
  if (!mayWait) endWhenAsked(job, wait, parts);
  const end = ended(job.result, wait.signal);
  const refuses = !mayWait && parts.config.onNoSandbox === "refuse";
  const no = refuses ? await noSandboxBefore(end, () => parts.berth.why(job.id)) : undefined;
  if (no) return await refuseWithoutSandbox(job, no, principal);
  const result = await end;
  return result && resultFor(principal, result);
}

/** A job is looked up only if it has not ended by then. */
const approvalLookMs = 1_000;

/** No decision comes within a call: one whose job waits for an approval is answered as one that takes longer. */
function endWhenAsked(job: EnqueuedJob, wait: BoundedWait, { berth }: Pick<Parts, "berth">): void {
  const asked = new AbortController();
  wait.endWith(asked.signal);
  const timer = setInterval(async () => {
    const why = await berth.why(job.id).catch(() => undefined);
    if (why?.codes.includes("needs-approval")) asked.abort();
    if (why && why.state !== "waiting" && why.state !== "scheduled") clearInterval(timer);
  }, approvalLookMs);
  wait.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

/** Undefined: the job started or ended, or the wait is over. */
async function noSandboxBefore(
  end: Promise<unknown>,
  why: () => Promise<Why>,
): Promise<NoSandbox | undefined> {
  using looking = new BoundedWait();
  const over = end.then(
    () => undefined,
    () => undefined,
  );
  return await Promise.race([over, whenNoSandbox({ why, signal: looking.signal })]);
}

/** A worker may have started the job meanwhile; then it keeps its own outcome. */
async function refuseWithoutSandbox(
  job: EnqueuedJob,
  no: NoSandbox,
  principal: Principal,
): Promise<JobResult | undefined> {
  await job.cancel();
  using wait = new BoundedWait().endAfter(cancelledMs);
  const last = await Promise.race([job.result, aborted(wait.signal)]);
  if (last && !neverBegan(last)) return resultFor(principal, last);
  if (!last) return undefined;
  throw new Problem("no-sandbox", whyFor(principal, no.why).reasons[no.index] ?? "", {
    headers: { "retry-after": "1" },
  });
}

function neverBegan({ outcome }: JobResult): boolean {
  return outcome.kind === "cancelled" && outcome.reason === cancelledUnbegun;
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}

/** A job's result; undefined if the signal fires first. */
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

/** A file operation either succeeds, or the caller gets the refusal's message. */
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
      throw new Problem("conflict", `lost: ${outcome.message}; it may have run`);
    default:
      throw new Problem("refused", `it ended as ${outcome.kind}`);
  }
}
