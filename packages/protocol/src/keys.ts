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
  /** Stream: what happened to one job. Its last entry is the terminal record, once there is one. */
  events: (key: SandboxKey, jobId: string): string => `berth:{${key}}:events:${jobId}`,
  /** Set: ids of jobs that somebody wants cancelled. */
  cancelled: (key: SandboxKey): string => `berth:{${key}}:cancelled`,
  /** Channel: a job id that was cancelled just now. */
  cancellations: (key: SandboxKey): string => `berth:{${key}}:cancellations`,
  /** Stream: one entry per finished job, for consumer groups. */
  results: "berth:results",
  /** Stream: what one client waits for. */
  inbox: (client: string): string => `berth:inbox:${client}`,
  /** Hash: what one worker says of itself; gone soon after it stops saying it. */
  worker: (worker: string): string => `berth:worker:${worker}`,
  /** Sorted set: worker by its last heartbeat. */
  workers: "berth:workers",
} as const;

/** BullMQ's prefix of one sandbox's queue. */
export function queuePrefix(key: SandboxKey): string {
  return `berth:{${key}}`;
}
