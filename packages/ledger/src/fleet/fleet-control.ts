import { setTimeout as sleep } from "node:timers/promises";
import {
  type ControlMessage,
  Fault,
  redisKeys,
  type SandboxKey,
  type TenantId,
  workerId,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { nanoid } from "nanoid";
import { checked } from "../checked.ts";
import { Grants } from "../leases/grants.ts";
import { Leases } from "../leases/leases.ts";

const pingWaitMs = 3_000;
const pingLookMs = 20;

/** Tells workers things. What must not be missed is also written down where they look. */
export class FleetControl {
  readonly #redis: Redis;
  readonly #leases: Leases;
  readonly grants: Grants;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.grants = new Grants(redis);
    this.#leases = new Leases(redis);
  }

  /** Whoever has the job ends it. */
  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    await this.#say({ type: "cancel", key, jobId });
  }

  /** Nothing more of the tenant begins; what runs ends. Its jobs are accepted, and wait. */
  async pause(tenant: TenantId): Promise<void> {
    await this.#leases.pause(tenant);
    await this.#say({ type: "pause", tenant });
  }

  /** The sweep offers what waits. */
  async resume(tenant: TenantId): Promise<void> {
    await this.#leases.resume(tenant);
  }

  async drain(worker: string): Promise<void> {
    await this.#say({ type: "drain", worker: checked(workerId, worker, "the worker") });
  }

  async ping(worker: string): Promise<Record<string, string | number>> {
    const answer = nanoid();
    await this.#say({ type: "ping", worker: checked(workerId, worker, "the worker"), answer });
    const until = performance.now() + pingWaitMs;
    while (performance.now() < until) {
      const said = await this.#redis.getdel(redisKeys.answer(answer));
      if (said !== null) return JSON.parse(said);
      await sleep(pingLookMs);
    }
    throw new Fault("no-answer", { worker, waitedMs: pingWaitMs });
  }

  async #say(message: ControlMessage): Promise<void> {
    await this.#redis.publish(redisKeys.control, JSON.stringify(message));
  }
}
