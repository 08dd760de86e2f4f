import { createHash } from "node:crypto";
import {
  Fault,
  type JobRequest,
  maxRequestBytes,
  redisKeys,
  type SandboxKey,
  tenantOf,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { nearlyFull, nearlyFullFault } from "../fleet/memory-mark.ts";
import { fleetFacts } from "../queues/admission.ts";
import { runInSlot } from "../slots.ts";

/** What is known of a staged request in the job that travels without it. */
export interface StagedRequest {
  readonly bytes: number;
  readonly sha256: string;
}

/** Until a job is accepted for it. A producer that dies in between leaves nothing for longer. */
const unacceptedMs = 3_600_000;

const stage = new Script({
  name: "stage",
  file: new URL("../../lua/stage.lua", import.meta.url),
  parse: (reply) => z.union([z.literal([0, 1]), nearlyFull]).parse(reply),
});

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

  async put(key: SandboxKey, jobId: string, request: JobRequest): Promise<StagedRequest> {
    const text = Buffer.from(JSON.stringify(request));
    if (text.length > maxRequestBytes)
      throw new Fault("payload-too-large", { bytes: text.length, limit: maxRequestBytes });
    const answer = await runInSlot(this.#redis, {
      ...{ key, script: stage, keys: [redisKeys.staged(key, jobId)] },
      args: [text, unacceptedMs, jobId, tenantOf(key)],
      facts: () => fleetFacts(this.#redis, key, jobId),
    });
    if (typeof answer !== "number") throw nearlyFullFault(answer);
    return { bytes: text.length, sha256: sha256Of(text) };
  }

  /** From now on it is kept until its terminal record is published. Right after the job was added, and only then. */
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
