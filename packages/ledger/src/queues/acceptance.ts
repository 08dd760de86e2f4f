import { Fault, type Job, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { unfinishedKeys } from "./job-queues.ts";

/** Where the fleet's settings say nothing else. */
export const defaultWaitingLimits = { perSandbox: 100_000, inFleet: 1_000_000 } as const;
/** An acceptance that no job followed: its producer died. */
const forgottenAfterMs = 3_600_000;

const count = z.number().int().min(0);
const reply = z.union([
  z.tuple([z.literal(1)]).transform(() => ({ answer: "add" as const })),
  z.tuple([z.literal(2), z.string()]).transform(([, key]) => ({ answer: "known" as const, key })),
  z
    .tuple([z.literal(3), count, count])
    .transform(([, waiting, limit]) => ({ answer: "sandbox-full" as const, waiting, limit })),
  z
    .tuple([z.literal(4), count, count])
    .transform(([, waiting, limit]) => ({ answer: "fleet-full" as const, waiting, limit })),
  z.tuple([z.literal(5), z.string()]).transform(([, pool]) => ({ answer: "wrong-pool" as const, pool })),
]);
const accept = new Script({
  name: "accept",
  file: new URL("../../lua/accept.lua", import.meta.url),
  parse: (value) => reply.parse(value),
});

/**
 * Whether a job may be added now. Throws when too many wait already or the id is another job's; `known` when this very
 * attempt was added before, or the job has ended: it may have been cancelled before it was due.
 */
export async function acceptJob(redis: Redis, key: SandboxKey, job: Job): Promise<"add" | "known"> {
  const keys = [
    redisKeys.job(job.id),
    redisKeys.unfinished,
    redisKeys.settings,
    redisKeys.lease(key),
    redisKeys.sandboxesOf(tenantOf(key)),
    ...unfinishedKeys(key),
  ];
  const { perSandbox, inFleet } = defaultWaitingLimits;
  const about = [key, job.tenant, job.session, job.request.kind, job.attempt, job.pool ?? ""];
  const said = await accept.run(redis, keys, [...about, perSandbox, inFleet, forgottenAfterMs]);
  switch (said.answer) {
    case "add":
      return "add";
    case "known":
      if (said.key !== key) throw new Fault("job-id-taken", { jobId: job.id, sandboxKey: said.key });
      return "known";
    case "sandbox-full":
      throw new Fault("sandbox-full", { sandboxKey: key, waiting: said.waiting, limit: said.limit });
    case "fleet-full":
      throw new Fault("fleet-full", { waiting: said.waiting, limit: said.limit });
    case "wrong-pool":
      throw new Fault("wrong-pool", { sandboxKey: key, pool: said.pool, wanted: job.pool ?? "" });
  }
}
