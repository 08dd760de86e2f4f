import type { TenancyOptions } from "./tenancy-options.ts";

export type IdleLimits = Pick<TenancyOptions, "leaseMs" | "idleMs" | "maxAgeMs">;

/** How long the loop may sleep without a job: it has to make progress within a lease, and to give up an idle sandbox in time. */
export function waitForJobMs(
  { leaseMs, idleMs }: IdleLimits,
  idleSinceMs: number | undefined,
  nowMs: number,
): number {
  if (idleSinceMs === undefined || idleMs === 0) return leaseMs;
  return Math.min(leaseMs, Math.max(0, idleSinceMs + idleMs - nowMs));
}

/** Whether a sandbox that is held since `heldSinceMs` is to be given up now. */
export function isIdleTooLong(
  { idleMs, maxAgeMs }: IdleLimits,
  idleSinceMs: number | undefined,
  heldSinceMs: number,
  nowMs: number,
): boolean {
  if (idleSinceMs === undefined) return false;
  return (idleMs > 0 && nowMs - idleSinceMs >= idleMs) || (maxAgeMs > 0 && nowMs - heldSinceMs >= maxAgeMs);
}
