import { hash } from "node:crypto";
import {
  ceilingName,
  defaultCeilings,
  Fault,
  fillsWorkspace,
  type Job,
  layers,
  redisKeys,
  type SandboxKey,
  tenantOf,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { nearlyFull, nearlyFullFault } from "../fleet/memory-mark.ts";
import { namesText } from "../names.ts";
import { runInSlot } from "../slots.ts";
import { unfinishedKeys } from "./queue-layout.ts";

/** Defaults of the fleet's settings. */
export const defaultWaitingLimits = {
  perSandbox: 100_000,
  inFleet: 1_000_000,
} as const;
/** How long an acceptance is kept if its producer dies before it adds the job. */
const forgottenAfterMs = 3_600_000;

/** In the form that the scripts read. */
export const ceilingDefaults = JSON.stringify(defaultCeilings);

const count = z.number().int().min(0);

/** The answer of `ceilings.lua`. */
export const tenantFull = z.tuple([z.literal("tenant-full"), ceilingName, count, count]).rest(count);

/** 128 bits of the hash of a first attempt's request. Later attempts of a job have the same request. */
export function requestMark({ request, attempt }: Pick<Job, "request" | "attempt">): string {
  return attempt > 1 ? "" : hash("sha256", JSON.stringify(request), "base64url").slice(0, 22);
}

/** The answer of `admission.lua` if a job may not be added. */
export const refusal = z.union([
  z.tuple([z.literal(["known", "taken"]), z.string()]),
  z.tuple([z.literal(["sandbox-full", "fleet-full"]), count, count]),
  tenantFull,
  nearlyFull,
  z.tuple([z.literal("wrong-pool"), z.string()]),
]);

const reply = z.union([z.tuple([z.literal("accepted"), z.number()]), refusal]);
const accept = new Script({
  name: "accept",
  file: new URL("../../lua/accept.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

/**
 * Accepts a job that is to run later. Throws if too many wait already or the id is another job's. `known`: this very attempt was added
 * before, or the job has ended; it may have been cancelled before it was due.
 */
export async function acceptJob(
  redis: Redis,
  key: SandboxKey,
  job: Job,
): Promise<"known" | { readonly bytes: number }> {
  const keys = [
    redisKeys.job(key, job.id),
    redisKeys.lease(key),
    redisKeys.sandboxesOf(tenantOf(key)),
    ...unfinishedKeys(key),
  ];
  const { perSandbox, inFleet } = defaultWaitingLimits;
  const about = [key, job.tenant, job.session, job.request.kind, job.attempt, job.pool ?? ""];
  const args = [
    ...[...about, perSandbox, inFleet, forgottenAfterMs, job.id],
    ...[ceilingDefaults, Buffer.byteLength(JSON.stringify(job)), requestMark(job)],
    ...[namesText(job.names), fillsWorkspace(job.request) ? "1" : ""],
  ];
  const facts = () => fleetFacts(redis, key, job.id, job.tenant);
  const answer = await runInSlot(redis, { key, script: accept, keys, args, facts });
  return answer[0] === "accepted" ? { bytes: answer[1] } : knownOrThrow(answer, key, job);
}

/** For a cluster: reads what `facts.lua` reads by itself on a single Redis. */
export async function fleetFacts(
  redis: Redis,
  key: SandboxKey,
  jobId: string,
  tenant: string,
): Promise<object> {
  const [settings, unfinished, sandbox, paused, ceilings] = await Promise.all([
    redis.hgetall(redisKeys.settings),
    redis.zcard(redisKeys.unfinished),
    redis.get(redisKeys.sandboxOf(jobId)),
    redis.sismember(redisKeys.paused, tenantOf(key)),
    ceilingFacts(redis, tenant),
  ]);
  const { fullUntil, usedBytes, fullFromBytes } = settings;
  const { maxWaitingPerSandbox, maxWaitingInFleet } = settings;
  return {
    full: fullUntil === undefined ? [] : [fullUntil, usedBytes, fullFromBytes],
    limits: [maxWaitingPerSandbox ?? false, maxWaitingInFleet ?? false],
    ...{ unfinished, sandbox: sandbox ?? undefined, paused, ceilings },
  };
}

/** The ceilings in the layers of the fleet and of a tenant, as `ceilings.lua` reads them. */
export async function ceilingFacts(redis: Redis, tenant: string): Promise<(string | false)[]> {
  const texts = await redis.hmget(redisKeys.ceilings, layers.fleet, layers.tenant(tenant));
  return texts.map((text) => text ?? false);
}

export function tenantFullFault(
  tenant: string,
  [, ceiling, used, limit, resetAtMs]: z.infer<typeof tenantFull>,
): Fault {
  return new Fault("tenant-full", { tenant, ceiling, used, limit, resetAtMs });
}

/** `known`, where the refused attempt is the very one that was added before. */
export function knownOrThrow(refused: z.infer<typeof refusal>, key: SandboxKey, job: Job): "known" {
  switch (refused[0]) {
    case "known":
      return "known";
    case "taken":
      throw new Fault("job-id-taken", { jobId: job.id, sandboxKey: refused[1] });
    case "sandbox-full":
      throw new Fault("sandbox-full", { sandboxKey: key, waiting: refused[1], limit: refused[2] });
    case "fleet-full":
      throw new Fault("fleet-full", { waiting: refused[1], limit: refused[2] });
    case "tenant-full":
      throw tenantFullFault(job.tenant, refused);
    case "redis-full":
      throw nearlyFullFault(refused);
    case "wrong-pool":
      throw new Fault("wrong-pool", { sandboxKey: key, pool: refused[1], wanted: job.pool ?? "" });
  }
}
