import { fillsWorkspace, type Job, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { defaultPool } from "../leases/lease-record.ts";
import { namesOfSandbox, namesText } from "../names.ts";
import { runInSlot } from "../slots.ts";
import {
  ceilingDefaults,
  defaultWaitingLimits,
  fleetFacts,
  knownOrThrow,
  refusal,
  requestMark,
} from "./admission.ts";
import { keptMs } from "./exchange.ts";
import type { OfferTarget } from "./offers.ts";
import {
  completedKey,
  entryKey,
  entryPrefix,
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

/** The state of a sandbox that has just got a job. */
export interface SubmittedTo extends OfferTarget {
  /** A worker holds it, and has been woken. */
  readonly live: boolean;
  readonly paused: boolean;
  /** By Redis' clock, if this submission had the job accepted. */
  readonly acceptedAtMs: number | undefined;
}

const flag = z.literal([0, 1]).transform((value) => value === 1);
const reply = z.union([
  z
    .tuple([z.literal("added"), flag, flag, z.string(), z.string(), z.number()])
    .transform(([, live, paused, home, pool, at]) => ({
      answer: "added" as const,
      to: { live, paused, home: home === "" ? undefined : home, pool, acceptedAtMs: at || undefined },
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
  const { perSandbox, inFleet } = defaultWaitingLimits;
  const payload = staged ? { ...job, request: undefined, staged } : job;
  const args = [
    ...[key, tenantOf(key), job.id, job.attempt, job.pool ?? "", defaultPool, job.session, job.request.kind],
    ...[perSandbox, inFleet, job.tenant, queued, JSON.stringify(payload)],
    ...[JSON.stringify({ attempts: 1, priority: job.priority }), job.priority, Date.now(), ceilingDefaults],
    ...[requestMark(job), staged ? "1" : "", entryPrefix(key), keptMs],
    ...[namesText(job.names), namesText(namesOfSandbox(job)), fillsWorkspace(job.request) ? "1" : ""],
  ];
  const facts = () => fleetFacts(redis, key, job.id, job.tenant);
  const answer = await runInSlot(redis, {
    ...{ key, script: submit, keys, args, facts },
    ...(onMade ? { onMade } : {}),
  });
  return answer.answer === "added" ? answer.to : knownOrThrow(answer.refused, key, job);
}

/** An attempt as it was added, not validated; undefined if its queue does not have it, or no longer. */
export async function findQueued(redis: Redis, key: SandboxKey, queued: string): Promise<unknown> {
  const data = await redis.hget(entryKey(key, queued), "data");
  return data === null ? undefined : JSON.parse(data);
}
