import { hash } from "node:crypto";
import { Fault, type Job, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { nearlyFull, nearlyFullFault } from "../fleet/memory-mark.ts";
import { runInSlot } from "../slots.ts";
import { unfinishedKeys } from "./queue-layout.ts";

/** Where the fleet's settings say nothing else. */
export const defaultWaitingLimits = {
  perSandbox: 100_000,
  inFleet: 1_000_000,
  bytesPerTenant: 512 * 1024 * 1024,
} as const;
/** An acceptance that no job followed: its producer died. */
const forgottenAfterMs = 3_600_000;

const count = z.number().int().min(0);

/** 128 bits of the hash of what a first attempt asks for. Later attempts of a job ask for the same. */
export function requestMark({ request, attempt }: Pick<Job, "request" | "attempt">): string {
  return attempt > 1 ? "" : hash("sha256", JSON.stringify(request), "base64url").slice(0, 22);
}

/** What `admission.lua` answers when a job may not be added. */
export const refusal = z.union([
  z.tuple([z.literal(["known", "taken"]), z.string()]),
  z.tuple([z.literal(["sandbox-full", "fleet-full", "tenant-full"]), count, count]),
  nearlyFull,
  z.tuple([z.literal("wrong-pool"), z.string()]),
]);

const reply = z.union([z.tuple([z.literal("accepted")]), refusal]);
const accept = new Script({
  name: "accept",
  file: new URL("../../lua/accept.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

/**
 * Accepts a job that is to run later. Throws when too many wait already or the id is another job's; `known` when this very
 * attempt was added before, or the job has ended: it may have been cancelled before it was due.
 */
export async function acceptJob(redis: Redis, key: SandboxKey, job: Job): Promise<"accepted" | "known"> {
  const keys = [
    redisKeys.job(key, job.id),
    redisKeys.lease(key),
    redisKeys.sandboxesOf(tenantOf(key)),
    ...unfinishedKeys(key),
  ];
  const { perSandbox, inFleet, bytesPerTenant } = defaultWaitingLimits;
  const about = [key, job.tenant, job.session, job.request.kind, job.attempt, job.pool ?? ""];
  const args = [
    ...[...about, perSandbox, inFleet, forgottenAfterMs, job.id],
    ...[bytesPerTenant, Buffer.byteLength(JSON.stringify(job)), requestMark(job)],
  ];
  const facts = () => fleetFacts(redis, key, job.id);
  const answer = await runInSlot(redis, { key, script: accept, keys, args, facts });
  return answer[0] === "accepted" ? "accepted" : knownOrThrow(answer, key, job);
}

/** What `facts.lua` reads by itself where there is only one slot. */
export async function fleetFacts(redis: Redis, key: SandboxKey, jobId: string): Promise<object> {
  const [settings, unfinished, sandbox, paused] = await Promise.all([
    redis.hgetall(redisKeys.settings),
    redis.zcard(redisKeys.unfinished),
    redis.get(redisKeys.sandboxOf(jobId)),
    redis.sismember(redisKeys.paused, tenantOf(key)),
  ]);
  const { fullUntil, usedBytes, fullFromBytes } = settings;
  const { maxWaitingPerSandbox, maxWaitingInFleet, maxWaitingBytesPerTenant } = settings;
  return {
    full: fullUntil === undefined ? [] : [fullUntil, usedBytes, fullFromBytes],
    limits: [maxWaitingPerSandbox ?? false, maxWaitingInFleet ?? false, maxWaitingBytesPerTenant ?? false],
    ...{ unfinished, sandbox: sandbox ?? undefined, paused },
  };
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
      throw new Fault("tenant-full", { tenant: job.tenant, bytes: refused[1], limit: refused[2] });
    case "redis-full":
      throw nearlyFullFault(refused);
    case "wrong-pool":
      throw new Fault("wrong-pool", { sandboxKey: key, pool: refused[1], wanted: job.pool ?? "" });
  }
}
