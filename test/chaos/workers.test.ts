import { setTimeout as wait } from "node:timers/promises";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { exec } from "../support/load.ts";
import { LoadRun, running } from "../support/load-run.ts";
import { oddSleep, processesWith } from "../support/processes.ts";

const leaseMs = 3_000;
/** Leases short enough to wait for, long enough for a loaded machine. */
const brisk = { ...busybox, BERTH_LEASE_MS: String(leaseMs), BERTH_SWEEP_MS: "500" };

/** A command that stays, with a child that left its session. */
function staying(seconds: number): { readonly body: string; readonly sleep: string } {
  const sleep = oddSleep(seconds);
  return { sleep, body: `setsid ${sleep} & echo up; ${sleep}` };
}

describe("worker that dies in the middle of a job", () => {
  test("when a worker dies in a job, what is safe to repeat runs again, and anything else ends as lost", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const second = await fleet.worker("worker-2", brisk);
    // Asleep, so that the first one takes the work.
    second.signal("SIGSTOP");
    const run = new LoadRun(fleet.client());
    const { body, sleep } = staying(40);
    const risky = await run.submit(exec("risky", "risky", body));
    const safe = await run.submit(exec("safe", "safe", "echo up; sleep 2", { idempotent: true }));
    const behind = await run.submit(exec("risky", "behind", "cat ledger"));
    await Promise.all([running(risky), running(safe)]);
    expect(await processesWith(sleep)).not.toEqual([]);
    const died = performance.now();
    first.signal("SIGKILL");
    second.signal("SIGCONT");
    expect((await risky.result).outcome).toMatchObject({ kind: "lost" });
    const failoverMs = performance.now() - died;
    expect((await behind.result).value.stdout).toBe("+risky\n+behind\n");
    const nextMs = performance.now() - died;
    expect((await safe.result).outcome).toEqual({ kind: "exited", code: 0 });
    console.log(
      `failover with a lease of ${leaseMs} ms: lost published after ${Math.round(failoverMs)} ms, next result after ${Math.round(nextMs)} ms`,
    );
    // By the lease, not by the end of the command.
    expect(failoverMs).toBeLessThan(30_000);
    expect(await processesWith(sleep)).toEqual([]);
    expect((await fleet.containers()).every(({ worker }) => worker === "worker-2")).toBe(true);
    await fleet.provesSound(await run.jobs());
  });

  test("a dead worker's sandbox is taken over, though many sandboxes wait longer for an empty pool", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const tenants = Array.from({ length: 120 }, (_, index) => `waits-${index}`);
    const unservable = tenants.map((tenant) => berth.tenant(tenant).exec("true", { pool: "absent" }));
    await Promise.all(unservable.map((job) => job.enqueued()));
    const first = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(berth);
    const risky = await run.submit(exec("acme", "risky", "echo up; sleep 60"));
    await running(risky);
    const successor = await fleet.worker("worker-2", brisk);
    first.signal("SIGKILL");
    await first.ended();
    await expect.poll(async () => (await berth.why(risky.id)).state).toBe("finished");
    expect((await risky.result).outcome).toMatchObject({ kind: "lost" });
    await expect.poll(() => successor.log).toContain("tenancy.settled");
    expect((await berth.scale()).waitingSandboxes).toBe(tenants.length);
  });

  test("a worker that dies in the middle of a job after it had lost Redis leaves nothing that outlives its lease", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", { ...brisk, BERTH_LEASE_MS: "8000" });
    const run = new LoadRun(fleet.client());
    const { body, sleep } = staying(43);
    await running(await run.submit(exec("acme", "job", body)));
    const deadlineMs = Number(await fleet.redis.connect().hget("berth:{acme}:lease", "deadline"));
    fleet.redis.freeze();
    // Most of its time it is without Redis, and goes on giving its sandbox signs of life.
    await wait((deadlineMs - Date.now()) * 0.6);
    worker.signal("SIGKILL");
    expect(await processesWith(sleep)).not.toEqual([]);
    await expect.poll(() => processesWith(sleep), { timeout: 30_000, interval: 25 }).toEqual([]);
    const beforeMs = deadlineMs - Date.now();
    fleet.redis.thaw();
    console.log(`its processes were gone ${beforeMs} ms before its lease was over`);
    expect(beforeMs).toBeGreaterThan(0);
  });

  test("a worker that dies in the middle of a job leaves no process behind, even if no worker takes over", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const { body, sleep } = staying(41);
    const job = await run.submit(exec("acme", "job", body));
    await running(job);
    worker.signal("SIGKILL");
    const died = performance.now();
    await expect.poll(() => processesWith(sleep), { timeout: 30_000, interval: 50 }).toEqual([]);
    console.log(`a dead worker's processes were gone after ${Math.round(performance.now() - died)} ms`);
    await fleet.worker("worker-1", brisk);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    await fleet.provesSound(await run.jobs());
  });

  test("a worker that dies in the middle of a job and comes back has its sandboxes again, in every state", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    await (await run.submit(exec("idle", "idle", "echo up"))).result;
    const busy = await run.submit(exec("busy", "busy", "echo up; sleep 30"));
    const again = await run.submit(exec("busy", "again", "echo again", { idempotent: true }));
    await running(busy);
    worker.signal("SIGKILL");
    await worker.ended();
    await fleet.worker("worker-1", brisk);
    expect((await busy.result).outcome).toMatchObject({ kind: "lost" });
    expect((await again.result).value.stdout).toBe("again\n");
    const after = await run.submit(exec("idle", "after", "echo after"));
    expect((await after.result).value.stdout).toBe("after\n");
    await fleet.provesSound(await run.jobs());
  });
});

describe("worker that slept through its lease", () => {
  test("a worker that slept through its lease publishes nothing when it wakes", async ({ fleet }) => {
    const sleeper = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const { body, sleep } = staying(42);
    const job = await run.submit(exec("acme", "job", body));
    await running(job);
    const [asleep] = await fleet.containers();
    sleeper.signal("SIGSTOP");
    await fleet.worker("worker-2", brisk);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    const after = await run.submit(exec("acme", "after", "cat ledger"));
    expect((await after.result).value.stdout).toBe("+job\n+after\n");
    const moved = await fleet.containers();
    expect(moved.map(({ worker }) => worker)).toEqual(["worker-2"]);
    expect(moved[0]?.epoch).toBeGreaterThan(asleep?.epoch ?? 0);
    sleeper.signal("SIGCONT");
    await expect.poll(() => sleeper.log, { timeout: 30_000 }).toContain("tenancy.fenced");
    // What it still had to say, and to clean up, it would have by its next heartbeat.
    const last = await run.submit(exec("acme", "last", "echo still here"));
    expect((await last.result).value.stdout).toBe("still here\n");
    expect(await fleet.containers()).toEqual(moved);
    expect(await processesWith(sleep)).toEqual([]);
    await fleet.provesSound(await run.jobs());
  });

  test("a worker that slept through its lease ends its own job as lost, once, when no other worker was there", async ({
    fleet,
  }) => {
    const sleeper = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const { body, sleep } = staying(43);
    const job = await run.submit(exec("acme", "job", body));
    const safe = await run.submit(exec("globex", "safe", "echo up; sleep 5", { idempotent: true }));
    await Promise.all([running(job), running(safe)]);
    sleeper.signal("SIGSTOP");
    await wait(2 * leaseMs);
    sleeper.signal("SIGCONT");
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    expect((await safe.result).outcome).toEqual({ kind: "exited", code: 0 });
    const after = await run.submit(exec("acme", "after", "cat ledger"));
    expect((await after.result).value.stdout).toBe("+job\n+after\n");
    expect(await processesWith(sleep)).toEqual([]);
    await fleet.provesSound(await run.jobs());
  });
});

describe("worker that gets SIGTERM", () => {
  test("a worker that gets SIGTERM finishes what runs, hands the rest back, and leaves with 0; nothing is lost", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const jobs = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        run.submit(exec("acme", `job${index}`, `sleep 0.5; echo ${index}`)),
      ),
    );
    const [front] = jobs;
    if (front) for await (const event of front.events()) if (event.type === "started") break;
    first.signal("SIGTERM");
    await fleet.worker("worker-2", brisk);
    expect(await first.ended()).toBe(0);
    const results = await run.results();
    expect(results.map(({ value }) => value.stdout)).toEqual(jobs.map((_, index) => `${index}\n`));
    await fleet.provesSound(await run.jobs());
  });

  test("a second SIGTERM ends running jobs: they run elsewhere if that is safe, else end as cancelled", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const risky = await run.submit(exec("risky", "risky", "echo up; sleep 30"));
    const safe = await run.submit(
      exec("safe", "safe", "echo up; [ -f once ] || { touch once; sleep 30; }", { idempotent: true }),
    );
    await Promise.all([running(risky), running(safe)]);
    first.signal("SIGTERM");
    await expect.poll(() => first.log).toContain("worker.draining");
    const stoppedAt = performance.now();
    first.signal("SIGTERM");
    expect(await first.ended()).toBe(0);
    // What runs has half a minute, and so has the command.
    expect(performance.now() - stoppedAt).toBeLessThan(20_000);
    expect(["lost", "cancelled"]).toContain((await risky.result).outcome.kind);
    await fleet.worker("worker-2", brisk);
    expect((await safe.result).outcome).toEqual({ kind: "exited", code: 0 });
    await fleet.provesSound(await run.jobs());
  });
});
