import { setTimeout as sleep } from "node:timers/promises";
import type { EnqueuedJob } from "@berth/client";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, type TestWorker, test } from "../support/fleet.ts";

/** Long enough that a busy machine renews it in time. */
const leaseMs = 10_000;
const brisk = { ...busybox, BERTH_LEASE_MS: String(leaseMs), BERTH_SWEEP_MS: "250" };
/** Long enough for every lease to run out several times. */
const manyLeasesMs = 2.5 * leaseMs;

/** A job that ends when the test makes the file. */
async function runningUntil(fleet: TestFleet, tenant: string, file: string): Promise<EnqueuedJob> {
  const command = `until [ -e ${file} ]; do sleep 0.05; done; echo done`;
  const job = await fleet.client().tenant(tenant).exec(command).enqueued();
  await expect.poll(() => job.status()).toBe("running");
  return job;
}

function fenced(workers: readonly TestWorker[]): string[] {
  return workers.flatMap(({ log }) => log.split("\n").filter((line) => line.includes("tenancy.fenced")));
}

describe("Redis that is out of memory for many leases", () => {
  test("a Redis that is out of memory for many leases ends nothing that runs, stores every end, and lets a worker start", async ({
    fleet,
  }) => {
    const workers = [await fleet.worker("worker-1", brisk), await fleet.worker("worker-2", brisk)];
    const redis = fleet.redis.connect();
    const through = await runningUntil(fleet, "acme", "go");
    const within = await fleet.client().tenant("globex").exec("sleep 3; echo done").enqueued();
    await expect.poll(() => within.status()).toBe("running");
    await redis.config("SET", "maxmemory", "1");
    const fullMs = Date.now();
    workers.push(await fleet.worker("worker-3", brisk));
    expect((await within.result).value.stdout, "published while it was full").toBe("done\n");
    await sleep(Math.max(0, fullMs + manyLeasesMs - Date.now()));
    expect(await through.status()).toBe("running");
    await redis.config("SET", "maxmemory", "0");
    const other = () => fleet.client().tenant("acme").exec("true", { session: "other" }).enqueued();
    const taken = () =>
      other().then(
        () => "accepted",
        ({ code }) => code,
      );
    await expect
      .poll(taken, { timeout: 10_000, message: "a worker's sweep sees that there is room" })
      .toBe("accepted");
    await fleet.client().tenant("acme").write("go", "", { session: "other" });
    expect((await through.result).value.stdout).toBe("done\n");
    expect(fenced(workers)).toEqual([]);
  });
});

describe("a Redis that refuses writes for many leases", () => {
  test("a Redis that refuses writes for many leases fences no worker, and gets every end afterwards", async ({
    fleet,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "a refusal counts as a renewal on one server only");
    const workers = [await fleet.worker("worker-1", brisk), await fleet.worker("worker-2", brisk)];
    const redis = fleet.redis.connect();
    const through = await runningUntil(fleet, "acme", "go");
    const within = await fleet.client().tenant("globex").exec("sleep 2; echo done").enqueued();
    await expect.poll(() => within.status()).toBe("running");
    const deadline = async () =>
      Number(await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "deadline"));
    await fleet.redis.refuseWrites();
    const refusedMs = Date.now();
    const third = fleet.launch("worker-3", brisk);
    await expect.poll(() => third.log, { timeout: 30_000 }).toContain("worker.waiting");
    expect(third.log).toContain("MISCONF");
    await sleep(Math.max(0, refusedMs + manyLeasesMs - Date.now()));
    expect(await deadline(), "the lease has run out by Redis' clock").toBeLessThan(Date.now() - leaseMs);
    expect([await through.status(), await within.status()]).toEqual(["running", "running"]);
    await fleet.redis.acceptWrites();
    expect((await within.result).value.stdout).toBe("done\n");
    await fleet.client().tenant("acme").write("go", "", { session: "other" });
    expect((await through.result).value.stdout).toBe("done\n");
    await expect.poll(() => third.log, { timeout: 30_000 }).toContain("worker.started");
    expect(fenced([...workers, third])).toEqual([]);
  });
});
