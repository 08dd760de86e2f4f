import { type DueTime, dueTime, problemsOf } from "@berth/protocol";
import { InvalidJob } from "./invalid-job.ts";

/** Undefined: at once. */
export function dueAtMsOf(order: DueTime, nowMs: number): number | undefined {
  const { delayMs, runAtMs } = order;
  const parsed = dueTime.safeParse({ delayMs, runAtMs });
  if (!parsed.success) throw new InvalidJob(problemsOf(parsed.error));
  const dueAtMs = runAtMs ?? (delayMs === undefined ? undefined : nowMs + delayMs);
  return dueAtMs === undefined || dueAtMs <= nowMs ? undefined : dueAtMs;
}
