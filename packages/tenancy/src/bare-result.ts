import type { JobResult, Outcome } from "@berth/protocol";

/** Of a job that left nothing but how it ended. */
export function bareResult(outcome: Outcome): JobResult {
  return { outcome, value: {}, timing: { wallMs: 0, cpuMs: 0 } };
}
