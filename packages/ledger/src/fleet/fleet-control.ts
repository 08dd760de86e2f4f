import { Fault, type SandboxKey, type TenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { checked } from "../checked.ts";
import { Grants } from "../leases/grants.ts";
import { Leases } from "../leases/leases.ts";
import { pingWorker, sendToWorkers } from "./control-channel.ts";

const pingWaitMs = 3_000;

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

  /** The worker that has the job ends it. */
  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    await sendToWorkers(this.#redis, { type: "cancel", key, jobId });
  }

  /** Starts no more jobs of the tenant; running jobs go on to their end. New jobs are accepted, and wait. */
  async pause(tenant: TenantId): Promise<void> {
    await this.#leases.pause(tenant);
    await sendToWorkers(this.#redis, { type: "pause", tenant });
  }

  /** The sweep offers what waits. */
  async resume(tenant: TenantId): Promise<void> {
    await this.#leases.resume(tenant);
  }

  async drain(worker: string): Promise<void> {
    await sendToWorkers(this.#redis, { type: "drain", worker: checked(workerId, worker, "the worker") });
  }

  async ping(worker: string): Promise<Record<string, string | number>> {
    const id = checked(workerId, worker, "the worker");
    const status = await pingWorker(this.#redis, id, { withinMs: pingWaitMs });
    if (status === undefined) throw new Fault("no-answer", { worker, waitedMs: pingWaitMs });
    return status;
  }
}
