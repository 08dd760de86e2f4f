import type { EnqueuedJob } from "@berth/client";
import { JobQueues, OfferTaker } from "@berth/queue";
import { JobEvents } from "@berth/streams";
import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";

/** Leases short enough to wait for, long enough for a loaded machine. */
const brisk = { BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };

/** Until its command has said something. */
async function running(job: EnqueuedJob): Promise<void> {
  for await (const event of job.events()) if (event.type === "stdout") return;
  throw new Error("it ended without a word");
}

describe("a worker that dies in the middle of a job", () => {
  test("loses nothing: what is safe to repeat runs again elsewhere, anything else ends as lost", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const second = await fleet.worker("worker-2", brisk);
    // Asleep, so that the first one takes the work.
    second.signal("SIGSTOP");
    const berth = fleet.client();
    const command = "echo ran >> ledger; echo up; sleep 3";
    const risky = await berth.tenant("risky").exec(command).enqueued();
    const safe = await berth.tenant("safe").exec(command, {}, { idempotent: true }).enqueued();
    const behind = await berth.tenant("risky").exec("cat ledger").enqueued();
    await Promise.all([running(risky), running(safe)]);
    const died = performance.now();
    first.signal("SIGKILL");
    second.signal("SIGCONT");
    expect((await risky.result).outcome).toMatchObject({ kind: "lost" });
    const failoverMs = performance.now() - died;
    expect((await safe.result).outcome).toEqual({ kind: "exited", code: 0 });
    expect((await behind.result).value.stdout).toBe("ran\n");
    expect(failoverMs).toBeLessThan(20_000);
    console.log(`failover with a lease of 3 s: ${Math.round(failoverMs)} ms`);
    expect((await fleet.containers()).every(({ worker }) => worker === "worker-2")).toBe(true);
  });
});

describe("a worker that slept through its lease", () => {
  test("publishes nothing when it wakes, and its sandbox has moved", async ({ fleet }) => {
    const sleeper = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const job = await acme.exec("echo once >> ledger; echo up; sleep 2; echo ended").enqueued();
    await running(job);
    sleeper.signal("SIGSTOP");
    await fleet.worker("worker-2", brisk);
    expect((await job.result).outcome).toMatchObject({ kind: "lost" });
    sleeper.signal("SIGCONT");
    await expect.poll(() => sleeper.log, { timeout: 15_000 }).toContain("tenancy.fenced");
    expect((await acme.exec("cat ledger")).value.stdout).toBe("once\n");
    const entries = await new JobEvents(fleet.redis.connect()).read(job.key, job.id, "");
    expect(entries.filter(({ event }) => event.type === "finished")).toHaveLength(1);
    expect(entries.at(-1)?.event.type).toBe("finished");
  });
});

describe("Redis in trouble", () => {
  test("frozen for less than a lease moves no tenant and runs nothing twice", async ({ fleet }) => {
    const worker = await fleet.worker("worker-1", { BERTH_LEASE_MS: "8000" });
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    const before = await fleet.containers();
    const job = acme.exec("echo ran >> ledger; sleep 2; cat ledger");
    await job.enqueued();
    fleet.redis.freeze();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    fleet.redis.thaw();
    expect((await job).value.stdout).toBe("ran\n");
    expect(await fleet.containers()).toEqual(before);
    expect(worker.log).not.toContain("tenancy.fenced");
  });

  test("killed and started again with its file: everything accepted ends", async ({ fleet }) => {
    await fleet.worker("worker-1", { BERTH_LEASE_MS: "8000" });
    const berth = fleet.client();
    const jobs = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        berth
          .tenant(`t${index % 3}`)
          .exec(`sleep 0.3; echo ${index}`, {}, { idempotent: true })
          .enqueued(),
      ),
    );
    await fleet.redis.kill();
    await fleet.redis.start();
    const results = await Promise.all(jobs.map(({ result }) => result));
    expect(results.map(({ value }) => value.stdout)).toEqual(jobs.map((_, index) => `${index}\n`));
  });
});

describe("a producer that dies between its two steps", () => {
  test("is made up for by the sweep", async ({ fleet }) => {
    const acme = fleet.client().tenant("acme");
    // Nobody listens yet, and the offer is taken away: what a producer killed before offering leaves behind.
    const job = await acme.exec("echo found").enqueued();
    const redis = fleet.redis.connect();
    await redis.del("berth:offers:wait", "berth:offers:o-acme", "berth:offers:marker");
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
  });
});

describe("a worker that dies between taking an offer and settling it", () => {
  test("does not keep the sandbox from being offered again", async ({ fleet }) => {
    const job = await fleet.client().tenant("acme").exec("echo found").enqueued();
    const taker = new OfferTaker(fleet.redis.connect("blocking"), "a-taker-that-dies", {
      pool: "default",
      home: undefined,
    });
    await expect.poll(async () => (await taker.next())?.key).toBe("acme");
    await taker.close();
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
  });
});

describe("a worker told to stop", () => {
  test("finishes what runs, hands the rest back, and leaves with 0; nothing is lost", async ({ fleet }) => {
    const first = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const jobs = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        acme.exec(`sleep 0.5; echo ${index} >> ledger; tail -n 1 ledger`).enqueued(),
      ),
    );
    const [front] = jobs;
    if (front) for await (const event of front.events()) if (event.type === "started") break;
    first.signal("SIGTERM");
    await fleet.worker("worker-2", brisk);
    expect(await first.ended()).toBe(0);
    const results = await Promise.all(jobs.map(({ result }) => result));
    expect(results.map(({ value }) => value.stdout)).toEqual(jobs.map((_, index) => `${index}\n`));
    expect((await acme.exec("cat ledger")).value.stdout).toBe("0\n1\n2\n3\n4\n5\n");
  });
});

describe("a poisoned job", () => {
  test("ends as refused and does not block its tenant", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    const redis = fleet.redis.connect();
    const queues = new JobQueues(redis);
    await queues.add(
      "acme" as never,
      { version: 9, id: "poison", request: { kind: "exec" }, priority: 0 } as never,
    );
    expect((await acme.exec("echo fine")).value.stdout).toBe("fine\n");
    const progress = await new JobEvents(redis).progress("acme" as never, "poison");
    expect(progress).toMatchObject({
      state: "finished",
      result: { outcome: { kind: "refused", code: "invalid-job" } },
    });
    await queues.close();
  });
});
