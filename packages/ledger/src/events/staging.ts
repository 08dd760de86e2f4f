import { createHash } from "node:crypto";
import { Fault, type Job, maxRequestBytes, redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { nearlyFull, nearlyFullFault } from "../fleet/memory-mark.ts";
import { ceilingDefaults, fleetFacts, tenantFull, tenantFullFault } from "../queues/admission.ts";
import { runInSlot } from "../slots.ts";

/** The description of a staged request in the job that travels without it. */
export interface StagedRequest {
  readonly bytes: number;
  readonly sha256: string;
}

/** Lifetime until its job is accepted: a producer that dies in between leaves nothing for longer. */
const unacceptedMs = 3_600_000;

const stage = new Script({
  name: "stage",
  file: new URL("../../lua/stage.lua", import.meta.url),
  parse: (reply) => z.union([z.tuple([z.literal(["put", "known"])]), nearlyFull, tenantFull]).parse(reply),
});
const unstage = new Script({
  name: "unstage",
  file: new URL("../../lua/unstage.lua", import.meta.url),
  parse: (reply) => reply === 1,
});

/** Whose request it is. */
export type StagedFor = Pick<Job, "id" | "tenant">;

/**
 * Requests too large for the queue, beside it in Redis.
 *
 *   put, for an hour ──accept()──▶ kept ──the job's terminal record──▶ gone
 *
 * Promises: what take() gives is byte for byte what put() was given. A second put under the id of an accepted job changes
 * nothing: that job is the one that runs.
 */
export class Staging {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** `isAccepted`: its job was accepted, and its bytes are counted. Otherwise they count for the tenant until the job is accepted. */
  async put(
    key: SandboxKey,
    job: StagedFor & Pick<Job, "request">,
    { isAccepted = false }: { readonly isAccepted?: boolean } = {},
  ): Promise<StagedRequest> {
    const text = Buffer.from(JSON.stringify(job.request));
    if (text.length > maxRequestBytes)
      throw new Fault("payload-too-large", { bytes: text.length, limit: maxRequestBytes });
    const answer = await runInSlot(this.#redis, {
      ...{ key, script: stage, keys: [redisKeys.staged(key, job.id)] },
      args: [text, unacceptedMs, job.id, key, job.tenant, ceilingDefaults, isAccepted ? "1" : ""],
      facts: () => fleetFacts(this.#redis, key, job.id, job.tenant),
    });
    if (answer[0] === "tenant-full") throw tenantFullFault(job.tenant, answer);
    if (answer[0] === "redis-full") throw nearlyFullFault(answer);
    return { bytes: text.length, sha256: sha256Of(text) };
  }

  /** Removes the request of a refused job. Keeps it if an accepted job needs it. */
  async drop(key: SandboxKey, { id, tenant }: StagedFor): Promise<void> {
    await unstage.run(this.#redis, [redisKeys.staged(key, id)], [id, key, tenant]);
  }

  /** Keeps the request until its job's terminal record is published. Call it right after the job was added, and only then. */
  async accept(key: SandboxKey, jobId: string): Promise<void> {
    await this.#redis.persist(redisKeys.staged(key, jobId));
  }

  /** The request as it was put, not checked. */
  async take(key: SandboxKey, jobId: string, staged: StagedRequest): Promise<unknown> {
    const text = await this.#redis.getBuffer(redisKeys.staged(key, jobId));
    if (!text) throw new Fault("payload-missing", { jobId, detail: "it is gone" });
    if (text.length !== staged.bytes || sha256Of(text) !== staged.sha256)
      throw new Fault("payload-missing", { jobId, detail: "another was put in its place" });
    return JSON.parse(text.toString("utf8"));
  }
}

function sha256Of(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
