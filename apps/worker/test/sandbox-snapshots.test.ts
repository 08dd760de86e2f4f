import { Leases, SharedHomes, type SnapshotRecord, SnapshotStore } from "@berth/ledger";
import { Fault, sandboxKey, sandboxProfile, snapshotName, tenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Trees } from "@berth/sandbox";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { SandboxSnapshots } from "../src/snapshots/sandbox-snapshots.ts";

const acme = sandboxKey.parse("acme");
const base = snapshotName.parse("base");
const owner = { key: acme, profile: sandboxProfile.parse({}) };

/** Redis carries every call out. The answer to the first that records a snapshot is lost. */
class ForgetfulStore extends SnapshotStore {
  lostAnswers = 1;

  override async put(...call: Parameters<SnapshotStore["put"]>): Promise<SnapshotRecord> {
    const made = await super.put(...call);
    if (call[3].onlyLook !== true && this.lostAnswers-- > 0)
      throw new Fault("redis-unreplicated", { detail: "simulated" });
    return made;
  }
}

/** The ids of the copies that a host has. */
class Copies implements Pick<Trees, "take" | "remove"> {
  readonly ids = new Set<string>();

  async take(_owner: unknown, id: string, { entries, bytes }: { entries: number; bytes: number }) {
    this.ids.add(id);
    return { method: "copy", entries, bytes } as const;
  }

  async remove(id: string): Promise<void> {
    this.ids.delete(id);
  }
}

async function snapshotsOn(redis: Redis) {
  const holder = { worker: workerId.parse("worker-1"), instance: "one" };
  const taken = await new Leases(redis).take(acme, holder, 60_000);
  if (!taken.taken) throw new Error(taken.why);
  const holding = { epoch: taken.epoch, instance: holder.instance };
  const [store, copies] = [new ForgetfulStore(redis), new Copies()];
  const snapshots = new SandboxSnapshots({
    ...{ key: acme, holding, home: undefined, store, homes: new SharedHomes(redis) },
    trees: () => copies as unknown as Trees,
  });
  const take = (check: () => void) =>
    snapshots.carryOut({ kind: "snapshot", name: base, replace: false }, owner, {
      ...{ jobId: "job-a", entries: 1, bytes: 10, check },
      signal: new AbortController().signal,
    });
  return { take, store, copies };
}

describe("snapshot whose record Redis acknowledged with a lost answer", () => {
  test("a snapshot is made although the answer that recorded it was lost", async ({ redis }) => {
    const { take, store, copies } = await snapshotsOn(redis.connect());
    expect(await take(() => {})).toMatchObject({ name: "base", size: 10 });
    const found = await store.find(tenantId.parse("acme"), base);
    expect([...copies.ids]).toEqual([found?.id]);
  });

  test("a snapshot that may be recorded keeps its files when its worker has lost the lease", async ({
    redis,
  }) => {
    const { take, store, copies } = await snapshotsOn(redis.connect());
    let checks = 0;
    const lostAtTheSecond = () => {
      if (++checks > 1) throw new Error("the lease is over");
    };
    await expect(take(lostAtTheSecond)).rejects.toThrow("the lease is over");
    const found = await store.find(tenantId.parse("acme"), base);
    expect([...copies.ids]).toEqual([found?.id]);
  });

  test("a snapshot that is not recorded leaves no files", async ({ redis }) => {
    const { take, copies } = await snapshotsOn(redis.connect());
    const lost = () => {
      throw new Error("the lease is over");
    };
    await expect(take(lost)).rejects.toThrow("the lease is over");
    expect([...copies.ids]).toEqual([]);
  });
});
