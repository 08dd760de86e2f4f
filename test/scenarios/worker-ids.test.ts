import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { exec } from "../support/load.ts";
import { LoadRun, running } from "../support/load-run.ts";

describe("worker started with the id of another", () => {
  test("a worker started with the id of a living one exits, names the owner, and disturbs nothing", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", busybox);
    const run = new LoadRun(fleet.client());
    const job = await run.submit(exec("acme", "acme.long", "echo up; sleep 3; echo ended"));
    await running(job);
    const second = fleet.launch("worker-1", busybox);
    expect(await second.ended()).toBe(1);
    expect(second.log).toMatch(
      new RegExp(`the worker id worker-1 is in use by process ${first.process.pid} on .*BERTH_WORKER_ID`),
    );
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    expect(first.log).not.toContain("tenancy.fenced");
    await fleet.provesSound(await run.jobs());
  });

  test("of two workers started with one id at the same moment, one runs", async ({ fleet }) => {
    const both = [fleet.launch("worker-1", busybox), fleet.launch("worker-1", busybox)];
    const settled = () => both.every(({ log, alive }) => log.includes("worker.started") || !alive);
    await expect.poll(settled, { timeout: 60_000 }).toBe(true);
    expect(both.filter(({ alive }) => alive)).toHaveLength(1);
    expect((await fleet.client().tenant("acme").exec("echo served")).stdout).toBe("served\n");
  });

  test("a worker takes over the leases of a dead predecessor on its machine long before they expire", async ({
    fleet,
  }) => {
    const slow = { ...busybox, BERTH_LEASE_MS: "60000" };
    const first = await fleet.worker("worker-1", slow);
    const run = new LoadRun(fleet.client());
    const job = await run.submit(exec("acme", "acme.long", "echo up; sleep 60"));
    await running(job);
    first.signal("SIGKILL");
    await first.ended();
    const beganMs = performance.now();
    await fleet.worker("worker-1", slow);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    expect(performance.now() - beganMs).toBeLessThan(30_000);
    await fleet.provesSound(await run.jobs());
  });

  test("a worker started with the id of a frozen one waits for its leases, and that one exits when it wakes", async ({
    fleet,
  }) => {
    const slow = { ...busybox, BERTH_LEASE_MS: "15000" };
    const first = await fleet.worker("worker-1", slow);
    const run = new LoadRun(fleet.client());
    const job = await run.submit(exec("acme", "acme.long", "echo up; sleep 60"));
    await running(job);
    const observer = fleet.redis.connect();
    first.signal("SIGSTOP");
    const deadlineMs = Number(await observer.hget("berth:{acme}:lease", "deadline"));
    const second = await fleet.worker("worker-1", slow);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    expect(Date.now()).toBeGreaterThan(deadlineMs - 50);
    first.signal("SIGCONT");
    expect(await first.ended()).toBe(1);
    expect(first.log).toContain("worker.replaced");
    expect(second.alive).toBe(true);
    await fleet.provesSound(await run.jobs());
  });
});
