import type { Retry } from "./job.ts";

export type Backoff = Pick<Retry, "backoffMs" | "maxBackoffMs" | "factor" | "jitter">;

/**
 * The pause after the given attempt failed. It grows by the factor up to its maximum. The jitter shortens it at random, so that
 * jobs that failed together do not retry together.
 */
export function backoffMs(attempt: number, backoff: Backoff, random: () => number = Math.random): number {
  const whole = Math.min(backoff.backoffMs * backoff.factor ** (attempt - 1), backoff.maxBackoffMs);
  return Math.round(whole * (1 - backoff.jitter * random()));
}
