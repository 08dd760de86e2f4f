import type { SandboxKey } from "./ids.ts";

/**
 * Every key in Redis, and the only place that spells one. docs/redis-keys.md lists them with type, owner and expiry.
 * What belongs to one sandbox carries its key in braces, so that a cluster would keep it on one node.
 */
export const redisKeys = {
  lease: (key: SandboxKey): string => `berth:{${key}}:lease`,
  /** Sorted set: sandbox key by its lease's deadline, in milliseconds of Redis time. */
  leases: "berth:leases",
  /** Sorted set: sandbox key by when it was marked; it has, or may have, work. */
  pending: "berth:pending",
} as const;

/** BullMQ's prefix of one sandbox's queue. */
export function queuePrefix(key: SandboxKey): string {
  return `berth:{${key}}`;
}
