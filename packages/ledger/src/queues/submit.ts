import { type Job, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { defaultPool } from "../leases/lease-record.ts";
import type { Place } from "../leases/leases.ts";
import { runInSlot } from "../slots.ts";
import { defaultWaitingLimits, fleetFacts, knownOrThrow, refusal, requestMark } from "./admission.ts";
import {
  completedKey,
  entryKey,
  failedKey,
  priorityCounterKey,
  queuedId,
  unfinishedKeys,
} from "./queue-layout.ts";

/** How to find and check a request that was too large for the queue. */
export interface StagedPayload {
  readonly bytes: number;
  readonly sha256: string;
}

/** Of a sandbox that has just been given a job. */
export interface SubmittedTo extends Place {
  /** A worker holds it, and has been woken. */
  readonly live: boolean;
  readonly paused: boolean;
}

const flag = z.literal([0, 1]).transform((value) => value === 1);
const reply = z.union([
  z
    .tuple([z.literal("added"), flag, flag, z.string(), z.string()])
    .transform(([, live, paused, home, pool]) => ({
      answer: "added" as const,
      to: { live, paused, home: home === "" ? undefined : home, pool },
    })),
  refusal.transform((refused) => ({ answer: "refused" as const, refused })),
]);
const submit = new Script({
  name: "submit",
  file: new URL("../../lua/submit.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

/**
 * Adds an attempt of a job to its sandbox's queue and marks the sandbox as having work, in one step: all of it happens or nothing.
 * `staged`: its request is beside the queue. Throws when the job may not be added; `known`: this attempt was added before.
 */
export async function submitJob(
  redis: Redis,
  key: SandboxKey,
  job: Job,
  staged?: StagedPayload,
  onMade?: () => void,
): Promise<SubmittedTo | "known"> {
  const queued = queuedId(job.id, job.attempt);
  const keys = [
    redisKeys.job(key, job.id),
    redisKeys.lease(key),
    redisKeys.sandboxesOf(tenantOf(key)),
    redisKeys.staged(key, job.id),
    entryKey(key, queued),
    completedKey(key),
    failedKey(key),
    priorityCounterKey(key),
    ...unfinishedKeys(key),
  ];
  const { perSandbox, inFleet, bytesPerTenant } = defaultWaitingLimits;
  const payload = staged ? { ...job, request: undefined, staged } : job;
  const args = [
    ...[key, tenantOf(key), job.id, job.attempt, job.pool ?? "", defaultPool, job.session, job.request.kind],
    ...[perSandbox, inFleet, job.tenant, queued, JSON.stringify(payload)],
    ...[JSON.stringify({ attempts: 1, priority: job.priority }), job.priority, Date.now(), bytesPerTenant],
    ...[requestMark(job), staged ? "1" : ""],
  ];
  const facts = () => fleetFacts(redis, key, job.id);
  const answer = await runInSlot(redis, {
    ...{ key, script: submit, keys, args, facts },
    ...(onMade ? { onMade } : {}),
  });
  return answer.answer === "added" ? answer.to : knownOrThrow(answer.refused, key, job);
}

/** An attempt as it was added, not checked; undefined when its queue does not have it, or not any more. */
export async function findQueued(redis: Redis, key: SandboxKey, queued: string): Promise<unknown> {
  const data = await redis.hget(entryKey(key, queued), "data");
  return data === null ? undefined : JSON.parse(data);
}
