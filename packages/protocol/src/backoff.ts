import type { Retry } from "./job.ts";

export type Backoff = Pick<Retry, "backoffMs" | "maxBackoffMs" | "factor" | "jitter">;

/**
 * The pause after the given attempt failed. It grows by the factor up to the longest; up to the jitter's share of it is left
 * out, so that what failed together does not come back together.
 */
export function backoffMs(attempt: number, backoff: Backoff, random: () => number = Math.random): number {
  const whole = Math.min(backoff.backoffMs * backoff.factor ** (attempt - 1), backoff.maxBackoffMs);
  return Math.round(whole * (1 - backoff.jitter * random()));
}
