import type { JobResult, Outcome } from "@berth/protocol";

/** The result of a job that has only an outcome. */
export function bareResult(outcome: Outcome): JobResult {
  return { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
}
