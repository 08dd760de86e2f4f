import { setTimeout as wait } from "node:timers/promises";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { exec, plannedLoad } from "../support/load.ts";
import { LoadRun, running } from "../support/load-run.ts";

describe("Redis that is frozen", () => {
  test("Redis that is frozen for less than a lease moves no tenant and runs nothing twice", async ({
    fleet,
  }) => {
    const workers = [
      await fleet.worker("worker-1", { ...busybox, BERTH_LEASE_MS: "8000" }),
      await fleet.worker("worker-2", { ...busybox, BERTH_LEASE_MS: "8000" }),
    ];
    const run = new LoadRun(fleet.client());
    const tenants = ["acme", "globex", "initech", "hooli"];
    await Promise.all(
      tenants.map(async (tenant) => (await run.submit(exec(tenant, `${tenant}0`, "true"))).result),
    );
    const before = await fleet.containers();
    for (const tenant of tenants) await run.submit(exec(tenant, `${tenant}1`, "sleep 2; echo ended"));
    fleet.redis.freeze();
    await wait(3_000);
    fleet.redis.thaw();
    expect((await run.results()).map(({ outcome }) => outcome.kind)).toEqual(Array(8).fill("exited"));
    expect((await fleet.containers()).map(({ id }) => id).sort()).toEqual(before.map(({ id }) => id).sort());
    for (const { log } of workers) expect(log).not.toContain("tenancy.fenced");
    await fleet.provesSound(await run.jobs());
  });

  test("Redis that is frozen for longer than a lease runs nothing twice: its holders stop by themselves", async ({
    fleet,
  }) => {
    const brisk = { ...busybox, BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };
    const workers = [await fleet.worker("worker-1", brisk), await fleet.worker("worker-2", brisk)];
    const run = new LoadRun(fleet.client());
    const tenants = Array.from({ length: 6 }, (_, index) => `tenant-${index}`);
    const begun = tenants.map(async (tenant, index) => {
      const job = await run.submit(
        exec(tenant, `${tenant}.long`, "echo up; sleep 4", { idempotent: index % 2 === 0 }),
      );
      await run.submit(exec(tenant, `${tenant}.behind`, "true"));
      await running(job);
    });
    await Promise.all(begun);
    fleet.redis.freeze();
    await wait(6_000);
    fleet.redis.thaw();
    const thawed = performance.now();
    const kinds = (await run.results()).map(({ outcome }) => outcome.kind);
    console.log(
      `Redis frozen for two leases: ${kinds.filter((kind) => kind === "lost").length} of 12 jobs lost, all ended ${Math.round(performance.now() - thawed)} ms later`,
    );
    // The three that must not be repeated, and only those, may be lost.
    expect(kinds.filter((kind) => kind === "lost").length).toBeLessThanOrEqual(3);
    expect(new Set(kinds).difference(new Set(["exited", "lost"]))).toEqual(new Set());
    expect(workers.map(({ log }) => log).join("")).toContain("tenancy.fenced");
    await fleet.provesSound(await run.jobs());
  });
});

describe("Redis that is killed and started again with its file", () => {
  test("Redis that is killed and started again with its file has everything that was accepted, and all of it ends", async ({
    fleet,
  }) => {
    const brisk = { ...busybox, BERTH_LEASE_MS: "6000", BERTH_SWEEP_MS: "500" };
    await fleet.worker("worker-1", brisk);
    await fleet.worker("worker-2", brisk);
    const run = new LoadRun(fleet.client());
    const loading = (async () => {
      for (const planned of plannedLoad({ seed: 21, tenants: 5, sessions: 2, jobs: 200, sleepMs: 100 }))
        await run.submit(planned).catch(() => undefined);
    })();
    for (let time = 0; time < 2; time++) {
      await wait(1_000);
      await fleet.redis.kill();
      await fleet.redis.start();
    }
    await loading;
    const results = await run.results();
    const lost = results.filter(({ outcome }) => outcome.kind === "lost").length;
    console.log(`Redis killed twice under load: ${results.length} of 200 jobs accepted, ${lost} lost`);
    expect(results.length).toBeGreaterThan(150);
    await fleet.provesSound(await run.jobs());
  });
});

describe("connections that are cut again and again, blocking ones too", () => {
  test("connections that are cut again and again, blocking ones too, cost time and lose no job", {
    timeout: 150_000,
  }, async ({ fleet }) => {
    const brisk = { ...busybox, BERTH_LEASE_MS: "6000", BERTH_SWEEP_MS: "500" };
    const workers = [await fleet.worker("worker-1", brisk), await fleet.worker("worker-2", brisk)];
    const run = new LoadRun(fleet.client());
    const loading = (async () => {
      for (const planned of plannedLoad({ seed: 31, tenants: 5, sessions: 2, jobs: 300, sleepMs: 80 }))
        await run.submit(planned).catch(() => undefined);
    })();
    let cut = 0;
    for (let time = 0; time < 20; time++) {
      await wait(300);
      cut += await fleet.redis.cut();
    }
    await loading;
    const results = await run.results(60_000);
    const jobs = await run.jobs();
    console.log(`${cut} connections cut under load: ${jobs.length} of 300 jobs accepted, all ended`);
    expect(cut).toBeGreaterThan(20);
    expect(jobs.length).toBeGreaterThan(250);
    for (const { log } of workers) expect(log).not.toContain("tenancy.fenced");
    expect(results.map(({ outcome }) => outcome.kind)).not.toContain("lost");
    await fleet.provesSound(jobs);
  });
});

describe("worker that gets SIGTERM while its connections are cut", () => {
  test("a worker that gets SIGTERM while its connections are cut stops all the same, and loses nothing", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_LEASE_MS: "6000" });
    const run = new LoadRun(fleet.client());
    for (let index = 0; index < 4; index++) await run.submit(exec(`tenant-${index}`, `m${index}`, "sleep 1"));
    await run.results();
    for (let index = 0; index < 4; index++) await run.submit(exec(`tenant-${index}`, `n${index}`, "sleep 1"));
    const gone = worker.ended();
    let stopping = true;
    void gone.then(() => {
      stopping = false;
    });
    await fleet.redis.cut();
    worker.signal("SIGTERM");
    while (stopping) {
      await wait(50);
      await fleet.redis.cut();
    }
    expect(await gone).toBe(0);
    await fleet.worker("worker-2", { ...busybox, BERTH_LEASE_MS: "6000" });
    await run.results(60_000);
    await fleet.provesSound(await run.jobs());
  });

  test("a worker that gets SIGTERM without a Redis stops when its leases are over", async ({ fleet }) => {
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_LEASE_MS: "3000" });
    const run = new LoadRun(fleet.client());
    const job = await run.submit(exec("acme", "job", "echo up; sleep 30"));
    await running(job);
    await fleet.redis.kill();
    worker.signal("SIGTERM");
    const stoppedAt = performance.now();
    await worker.ended();
    console.log(
      `a worker without Redis stopped ${Math.round(performance.now() - stoppedAt)} ms after its SIGTERM`,
    );
    expect(performance.now() - stoppedAt).toBeLessThan(20_000);
    await fleet.redis.start();
    await fleet.worker("worker-2", { ...busybox, BERTH_LEASE_MS: "3000" });
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    await fleet.provesSound(await run.jobs());
  });
});
