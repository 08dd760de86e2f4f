import { sandboxProfile, type WorkspaceUsage } from "@berth/protocol";
import { expect, onTestFinished, test } from "vitest";
import {
  type DiskUsage,
  type QuotaExceeded,
  type QuotaFor,
  QuotaGuard,
  type QuotaHooks,
} from "../src/quota-guard.ts";

const limit = 1_000_000;
const { limits } = sandboxProfile.parse({ limits: { workspaceBytes: limit } });

/** A workspace as init shows it, on a disk. */
class Seen {
  usage: WorkspaceUsage = { bytes: 1_000, entries: 1, unlinkedBytes: 0, partial: false };
  disk: DiskUsage = { bytes: 50_000_000, entries: 1_000 };
  looks = 0;
  low: QuotaExceeded | undefined;

  guard(quotaFor: QuotaFor = "all"): QuotaGuard {
    const hooks: QuotaHooks = {
      low: async () => this.low,
      alive: () => true,
      measure: async () => {
        this.looks++;
        return this.usage;
      },
      disk: async () => this.disk,
      isCounted: () => false,
      onBackgroundGrowth: () => {},
      onBlind: () => {},
    };
    const guard = new QuotaGuard(limits, hooks, quotaFor);
    onTestFinished(() => guard.stop());
    return guard;
  }
}

const looked = (seen: Seen, times: number) =>
  expect.poll(() => seen.looks, { timeout: 30_000 }).toBeGreaterThanOrEqual(times);

test("a workspace that cannot be counted to its end again and again holds what the disk took meanwhile", async () => {
  const seen = new Seen();
  const guard = seen.guard();
  const exceeded = Promise.withResolvers<unknown>();
  guard.watch(exceeded.resolve);
  await looked(seen, 1);
  seen.usage = { ...seen.usage, partial: true };
  seen.disk = { bytes: seen.disk.bytes + 2 * limit, entries: 1_001 };
  expect(await exceeded.promise).toMatchObject({
    kind: "quota-exceeded",
    unit: "bytes",
    used: 2 * limit + 1_000,
  });
  expect(seen.looks).toBeGreaterThanOrEqual(8);
});

test("a workspace that is counted to its end now and then is not charged with what others write", async () => {
  const seen = new Seen();
  const guard = seen.guard();
  let stopped = false;
  guard.watch(() => {
    stopped = true;
  });
  seen.disk = { bytes: seen.disk.bytes + 2 * limit, entries: 1_001 };
  for (let look = 1; look <= 10; look++) {
    seen.usage = { ...seen.usage, partial: look % 5 !== 0 };
    await looked(seen, look);
  }
  expect(stopped).toBe(false);
});

test("a guard of writes only leaves commands to the disk floor, which stops them all the same", async () => {
  const seen = new Seen();
  const guard = seen.guard("writes");
  const exceeded = Promise.withResolvers<unknown>();
  guard.watch(exceeded.resolve);
  await looked(seen, 1);
  seen.usage = { ...seen.usage, bytes: 3 * limit };
  await looked(seen, seen.looks + 2);
  expect(await Promise.race([exceeded.promise, "goes on"])).toBe("goes on");
  expect(await guard.full()).toBeUndefined();
  await expect(guard.reserve(1)).resolves.toMatchObject({ budgetBytes: 0 });
  seen.low = { kind: "quota-exceeded", limit: 1, used: 0, unit: "disk" };
  seen.usage = { ...seen.usage, bytes: 4 * limit };
  expect(await exceeded.promise).toMatchObject({ unit: "disk" });
  expect(await guard.full()).toMatchObject({ unit: "disk" });
  await expect(guard.reserve(1)).rejects.toMatchObject({ code: "no-space" });
});
