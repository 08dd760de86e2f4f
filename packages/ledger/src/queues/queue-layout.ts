import { queuePrefix, type SandboxKey } from "@berth/protocol";
import type { bullNames } from "./bull-records.ts";

/**
 * Everything of BullMQ's own layout that our scripts read or write, so that Bull Board shows sandbox queues: names of keys, and
 * fields of an entry. `bull-records.ts` describes both. `test/queue-layout.test.ts` compares it with the pinned version.
 */
export const jobQueueName = "jobs";

/** Entries kept of attempts that succeeded, and as many of those that did not. Only for Bull Board: results live in our streams. */
export const finishedKept = 100;

function queueKey(key: SandboxKey, name: Exclude<keyof typeof bullNames, `<${string}`>): string {
  return `${entryPrefix(key)}${name}`;
}

/** Differs for each attempt: BullMQ keeps finished jobs for a while, and would ignore a later attempt of the same id. */
export function queuedId(id: string, attempt: number): string {
  return attempt > 1 ? `${id}~${attempt}` : id;
}

/** The job's own id, whichever attempt it is. */
export function jobIdOf(queued: string): string {
  return queued.split("~", 1)[0] ?? queued;
}

/** Which attempt it is. */
export function attemptOf(queued: string): number {
  return Number(queued.split("~", 2)[1] ?? 1);
}

/** Where one attempt of a job is kept: for scripts that look at it, or take it out. */
export function queueKeys(key: SandboxKey, id: string, attempt: number) {
  const queued = queuedId(id, attempt);
  return { queuedId: queued, entryKey: entryKey(key, queued), unfinishedKeys: unfinishedKeys(key) };
}

/** What the keys of a queue's entries begin with. */
export function entryPrefix(key: SandboxKey): string {
  return `${queuePrefix(key)}:${jobQueueName}:`;
}

/** Hash: one attempt of a job. */
export function entryKey(key: SandboxKey, queued: string): string {
  return `${entryPrefix(key)}${queued}`;
}

/** List: what waits without a priority, the last added first. */
export function waitKey(key: SandboxKey): string {
  return queueKey(key, "wait");
}

/** Sorted set: what waits with a priority. */
export function prioritizedKey(key: SandboxKey): string {
  return queueKey(key, "prioritized");
}

/** String: counts what was added with a priority, for their order. */
export function priorityCounterKey(key: SandboxKey): string {
  return queueKey(key, "pc");
}

/** List: what is taken from the queue, the last taken first. */
export function takenKey(key: SandboxKey): string {
  return queueKey(key, "active");
}

/** Sorted set: attempts that succeeded, by when. */
export function completedKey(key: SandboxKey): string {
  return queueKey(key, "completed");
}

/** Sorted set: attempts that ended in any other way, by when. */
export function failedKey(key: SandboxKey): string {
  return queueKey(key, "failed");
}

/** Where a sandbox's queue keeps jobs that are not finished. */
export function unfinishedKeys(key: SandboxKey): string[] {
  return [waitKey(key), takenKey(key), prioritizedKey(key), queueKey(key, "paused")];
}
