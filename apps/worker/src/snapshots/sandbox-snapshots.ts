import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Holding, SharedHomes, SnapshotRecord, SnapshotStore } from "@berth/ledger";
import {
  Fault,
  isFault,
  type Job,
  type SandboxKey,
  type SandboxProfile,
  type SnapshotName,
  sharedOwner,
  tenantOf,
  type ValueOf,
  type WorkspaceRequest,
} from "@berth/protocol";
import type { TreeOwner, Trees } from "@berth/sandbox";

export interface SandboxSnapshotsOptions {
  readonly key: SandboxKey;
  readonly holding: Holding;
  /** Whose disk has the workspaces; undefined where every worker sees the same ones. */
  readonly home: string | undefined;
  readonly trees: () => Trees;
  readonly store: SnapshotStore;
  readonly homes: Pick<SharedHomes, "sendTo">;
}

/** Between two attempts to record a snapshot: until a failover is over, or the lease. */
const againMs = 250;

/** A job about the workspace of a sandbox whose container is gone. */
export interface WorkspaceJob {
  readonly jobId: string;
  /** Files and directories in the workspace. */
  readonly entries: number;
  readonly bytes: number;
  readonly signal: AbortSignal;
  /** Throws when the lease's time is over. */
  readonly check: () => void;
}

/** Takes, restores and forks snapshots for one sandbox. */
export class SandboxSnapshots {
  readonly #options: SandboxSnapshotsOptions;

  constructor(options: SandboxSnapshotsOptions) {
    this.#options = options;
  }

  /** Call it before the sandbox is opened for the job. Throws if the job's snapshot is missing, refused, or on another host. */
  async prepare({ request, forkOf }: Job, profile: SandboxProfile): Promise<void> {
    const { key } = this.#options;
    if (forkOf === undefined && request.kind !== "snapshot" && request.kind !== "restore") return;
    if (tenantOf(key) === sharedOwner)
      throw refused(
        "shared",
        "the sandbox that all tenants share has no snapshots: its files are not one tenant's",
      );
    if (profile.workspace === "none")
      throw refused("no-workspace", "its profile keeps the workspace in memory, and a snapshot is on disk");
    if (request.kind === "restore") {
      if (profile.workspace === "ro")
        throw refused("read-only", "its profile lets no job change the workspace");
      await this.#here(request.name);
    }
    if (forkOf !== undefined && (await this.#trees.originOf(key)).kind === "absent") await this.#here(forkOf);
  }

  /** Whether the sandbox has a workspace that is no fork; it may be empty. */
  async isOwn(): Promise<boolean> {
    return (await this.#trees.originOf(this.#options.key)).kind === "own";
  }

  /** Makes the workspace from the snapshot if there is none yet. */
  async fork(name: SnapshotName, owner: TreeOwner, signal: AbortSignal): Promise<void> {
    const { key } = this.#options;
    const trees = this.#trees;
    if ((await trees.originOf(key)).kind === "absent")
      await trees.fork(owner, await this.#here(name), { signal });
    await this.checkFork(name);
  }

  /** Throws unless the workspace was made from that snapshot; its files may have changed since. */
  async checkFork(name: SnapshotName): Promise<void> {
    const origin = await this.#trees.originOf(this.#options.key);
    if (origin.kind === "fork" && origin.of === name) return;
    const what = origin.kind === "fork" ? `it is a fork of ${origin.of}` : "it has files of its own";
    throw refused(
      "own-files",
      `the sandbox cannot start as a fork of ${name}: ${what}; destroy it first, or name another session`,
    );
  }

  async carryOut(
    request: WorkspaceRequest,
    owner: TreeOwner,
    job: WorkspaceJob,
  ): Promise<ValueOf<"snapshot"> | ValueOf<"restore">> {
    return request.kind === "snapshot"
      ? await this.#take(request, owner, job)
      : await this.#restore(request, owner, job);
  }

  async #take(
    { name, ttlMs, replace }: Extract<WorkspaceRequest, { kind: "snapshot" }>,
    owner: TreeOwner,
    { jobId, entries, bytes, signal, check }: WorkspaceJob,
  ): Promise<ValueOf<"snapshot">> {
    const { key, holding, home, store } = this.#options;
    const trees = this.#trees;
    const id = `${tenantOf(key)}.${name}.${randomBytes(8).toString("hex")}`;
    const now = Date.now();
    const wanted: SnapshotRecord = {
      ...{ id, jobId, name, sandbox: key, size: bytes, count: entries, method: "copy", createdAtMs: now },
      ...(ttlMs === undefined ? {} : { expiresAtMs: now + ttlMs }),
      ...(home === undefined ? {} : { host: home }),
    };
    const before = await store.put(key, wanted, holding, { replace, onlyLook: true });
    if (before !== wanted) return madeOf(before);
    const taken = await trees.take(owner, id, { entries, bytes }, { signal });
    const made = { ...wanted, size: taken.bytes, count: taken.entries, method: taken.method };
    for (let mayBeThere = false; ; mayBeThere = true) {
      try {
        check();
        signal.throwIfAborted();
        return madeOf(await store.put(key, made, holding, { replace }));
      } catch (error) {
        if (!mayBeMade(error)) {
          // A record would be left without files. Files without a record the reaper removes.
          if (!mayBeThere) await trees.remove(id, owner.profile, {}).catch(() => {});
          throw error;
        }
      }
      await sleep(againMs, undefined, { signal }).catch(() => {});
    }
  }

  async #restore(
    { name }: Extract<WorkspaceRequest, { kind: "restore" }>,
    owner: TreeOwner,
    { signal, check }: WorkspaceJob,
  ): Promise<ValueOf<"restore">> {
    const found = await this.#here(name);
    const method = await this.#trees.restore(owner, found.id, { signal, check });
    return { name, size: found.size, count: found.count, method };
  }

  get #trees(): Trees {
    return this.#options.trees();
  }

  async #here(name: SnapshotName): Promise<SnapshotRecord> {
    const { key, holding, home, store, homes } = this.#options;
    const tenant = tenantOf(key);
    const found = await store.find(tenant, name);
    if (!found) throw new Fault("snapshot-unknown", { tenant, name });
    if (found.host !== undefined && home !== undefined && found.host !== home)
      return await homes.sendTo({ key, epoch: holding.epoch }, `snapshot.${name}`, found.host);
    return found;
  }
}

/** Redis may have recorded it, and only the answer is missing. */
function mayBeMade(error: unknown): boolean {
  return isFault(error, "redis-unreachable") || isFault(error, "redis-unreplicated");
}

function madeOf({ name, size, count, method, expiresAtMs }: SnapshotRecord): ValueOf<"snapshot"> {
  return { name, size, count, method, ...(expiresAtMs === undefined ? {} : { expiresAtMs }) };
}

function refused(reason: "shared" | "no-workspace" | "read-only" | "own-files", detail: string): Fault {
  return new Fault("snapshot-refused", { reason, detail });
}
