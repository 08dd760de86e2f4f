import {
  Fault,
  redisKeys,
  type SandboxKey,
  type SnapshotName,
  type SnapshotView,
  snapshotView,
  type TenantId,
  tenantOf,
} from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import type { Holding } from "../leases/leases.ts";
import { ceilingDefaults, ceilingFacts, tenantFull, tenantFullFault } from "../queues/admission.ts";
import { runInSlot } from "../slots.ts";

const snapshotRecord = snapshotView.extend({
  /** Names its files on its host. */
  id: z.string(),
  /** The job that made it. */
  jobId: z.string(),
});
export type SnapshotRecord = Readonly<z.infer<typeof snapshotRecord>>;

const putReply = z.union([
  z.tuple([z.literal("made")]),
  z.tuple([z.literal("exists"), z.string()]),
  z.tuple([z.literal("fenced"), z.number()]),
  tenantFull,
]);
const put = new Script({
  name: "snapshot-put",
  file: new URL("../../lua/snapshot-put.lua", import.meta.url),
  parse: (reply) => putReply.parse(reply),
});
const drop = new Script({
  name: "snapshot-drop",
  file: new URL("../../lua/snapshot-drop.lua", import.meta.url),
  parse: (reply) => z.literal([0, 1]).parse(reply) === 1,
});

export interface PutSnapshot {
  /** Replace a snapshot of that name. */
  readonly replace: boolean;
  /** Dry run: only checks whether it could be added. */
  readonly onlyLook?: boolean;
}

/** The tenants' snapshots by name. Their files are on the hosts; what is dropped here, a worker of its host removes. */
export class SnapshotStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Adds a snapshot that the holder of its sandbox has made. Returns the existing one if the same job made it before. Throws
   * `snapshot-refused` if another job's snapshot has the name, `tenant-full` or `lease-lost`.
   */
  async put(
    key: SandboxKey,
    record: SnapshotRecord,
    { epoch, instance }: Holding,
    { replace, onlyLook = false }: PutSnapshot,
  ): Promise<SnapshotRecord> {
    const tenant = tenantOf(key);
    const answer = await runInSlot(this.#redis, {
      ...{ key, script: put },
      keys: [...this.#keys(tenant), redisKeys.lease(key)],
      args: [
        ...[record.name, JSON.stringify(record), epoch, instance, record.jobId, replace ? "1" : "", tenant],
        ...[ceilingDefaults, onlyLook ? "1" : ""],
      ],
      facts: async () => ({ ceilings: await ceilingFacts(this.#redis, tenant) }),
    });
    switch (answer[0]) {
      case "made":
        return record;
      case "exists":
        return sameJobs(snapshotRecord.parse(JSON.parse(answer[1])), record);
      case "fenced":
        throw new Fault("lease-lost", { sandboxKey: key, epoch, highestEpoch: answer[1] });
      case "tenant-full":
        throw tenantFullFault(tenant, answer);
    }
  }

  /** Undefined: there is none of that name, or it has expired. */
  async find(tenant: TenantId, name: SnapshotName): Promise<SnapshotRecord | undefined> {
    const found = await this.#redis.hget(redisKeys.snapshots(tenant), name);
    const record = found === null ? undefined : snapshotRecord.parse(JSON.parse(found));
    return record && !hasExpired(record) ? record : undefined;
  }

  /** By name. */
  async list(tenant: TenantId): Promise<SnapshotRecord[]> {
    const found = await this.#redis.hvals(redisKeys.snapshots(tenant));
    return found
      .map((text) => snapshotRecord.parse(JSON.parse(text)))
      .filter((record) => !hasExpired(record))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** False: there was none. `id`: only the one that has it. */
  drop(tenant: TenantId, name: SnapshotName, id = ""): Promise<boolean> {
    return drop.run(this.#redis, this.#keys(tenant), [name, id]);
  }

  /** Whether a host has to keep or to remove the files of that id. */
  async fateOf(tenant: TenantId, name: SnapshotName, id: string): Promise<"kept" | "dropped" | "unknown"> {
    const [isDropped, found] = await Promise.all([
      this.#redis.sismember(redisKeys.droppedSnapshots(tenant), id),
      this.find(tenant, name),
    ]);
    if (found?.id === id) return "kept";
    if (isDropped === 1) return "dropped";
    return (await this.drop(tenant, name, id)) ? "dropped" : "unknown";
  }

  /** Forgets a dropped snapshot whose files are removed. */
  async forget(tenant: TenantId, id: string): Promise<void> {
    await this.#redis.srem(redisKeys.droppedSnapshots(tenant), id);
  }

  #keys(tenant: TenantId): string[] {
    return [redisKeys.snapshots(tenant), redisKeys.droppedSnapshots(tenant)];
  }
}

/** As it is listed. */
export function viewOf({ id: _, jobId: __, ...view }: SnapshotRecord): SnapshotView {
  return view;
}

function hasExpired({ expiresAtMs }: SnapshotRecord): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= Date.now();
}

function sameJobs(there: SnapshotRecord, { jobId, name }: SnapshotRecord): SnapshotRecord {
  if (there.jobId === jobId) return there;
  const detail = `there is a snapshot ${name} already: remove it first, choose another name, or replace it`;
  throw new Fault("snapshot-refused", { reason: "exists", detail });
}
