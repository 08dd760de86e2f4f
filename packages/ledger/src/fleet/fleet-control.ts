import { Fault, type SandboxKey, type TenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { checked } from "../checked.ts";
import { Grants } from "../leases/grants.ts";
import { Leases } from "../leases/leases.ts";
import { pingWorker, sendToWorkers } from "./control-channel.ts";

const pingWaitMs = 3_000;

/** Sends control messages to workers. A worker may miss one: requests that must not be missed are also stored in Redis. */
export class FleetControl {
  readonly #redis: Redis;
  readonly #leases: Leases;
  readonly grants: Grants;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.grants = new Grants(redis);
    this.#leases = new Leases(redis);
  }

  /** Asks the holder to end the job. */
  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    await sendToWorkers(this.#redis, { type: "cancel", key, jobId });
  }

  /** Starts no more jobs of the tenant; running jobs go on to their end. New jobs are accepted, and wait. */
  async pause(tenant: TenantId): Promise<void> {
    await this.#leases.pause(tenant);
    await sendToWorkers(this.#redis, { type: "pause", tenant });
  }

  /** Lets workers take the tenant's sandboxes again. The sweep offers those that have work. */
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
