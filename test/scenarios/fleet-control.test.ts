import { forgetIdleQueues } from "@berth/ledger";
import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";

describe("tenant that is paused", () => {
  test("a tenant that is paused begins nothing more until it is resumed, and why gives the pause as the reason", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.exec("echo before");
    await acme.pause();
    await expect.poll(async () => (await berth.sandboxes())[0]?.worker).toBeUndefined();
    const job = await acme.exec("echo after").enqueued();
    expect(await berth.why(job.id)).toMatchObject({
      state: "waiting",
      reasons: expect.arrayContaining(["the tenant acme is paused"]),
    });
    expect((await berth.tenant("globex").exec("echo mine")).stdout).toBe("mine\n");
    expect(await job.status()).toBe("waiting");
    await acme.resume();
    expect((await job.result).value.stdout).toBe("after\n");
  });
});

describe("too many jobs", () => {
  test("too many jobs of one sandbox are refused with the reason, and accepted again when some have ended", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await fleet.redis.connect().hset(redisKeys.settings, "maxWaitingPerSandbox", 3);
    const accepted = [1, 2, 3].map((n) => berth.tenant("acme").exec(`echo ${n}`));
    for (const job of accepted) await job.enqueued();
    await expect(berth.tenant("acme").exec("echo 4").enqueued()).rejects.toMatchObject({
      code: "sandbox-full",
      context: { waiting: 3, limit: 3 },
    });
    await berth.tenant("globex").exec("echo other").enqueued();
    await fleet.worker("worker-1", busybox);
    await Promise.all(accepted);
    expect((await berth.tenant("acme").exec("echo 4")).stdout).toBe("4\n");
  });

  test("too many jobs of the whole fleet are refused with the reason", async ({ fleet }) => {
    const berth = fleet.client();
    await fleet.redis.connect().hset(redisKeys.settings, "maxWaitingInFleet", 2);
    await berth.tenant("acme").exec("true").enqueued();
    await berth.tenant("globex").exec("true").enqueued();
    await expect(berth.tenant("initech").exec("true").enqueued()).rejects.toMatchObject({
      code: "fleet-full",
    });
  });
});

describe("job's id", () => {
  test("a job's id finds the job from any process, and cancels it", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const producer = fleet.client();
    const running = await producer.tenant("acme").exec("sleep 60", { id: "the-long-one" }).enqueued();
    const waiting = await producer.tenant("acme").exec("echo never", { id: "the-next-one" }).enqueued();
    const other = fleet.client();
    await expect.poll(async () => (await other.why("the-long-one")).state).toBe("running");
    // Behind a job that runs for a minute: it ends now, not then.
    expect(await other.cancel("the-next-one")).toBe(true);
    expect((await waiting.result).outcome).toMatchObject({ kind: "cancelled" });
    expect(await running.status()).toBe("running");
    expect(await other.cancel("the-long-one")).toBe(true);
    expect((await (await other.job("the-long-one"))?.result)?.outcome).toMatchObject({ kind: "cancelled" });
    expect(await other.why("the-long-one")).toMatchObject({ state: "finished" });
    expect(await other.cancel("never-heard-of")).toBe(false);
    expect((await other.why("never-heard-of")).state).toBe("unknown");
  });

  test("a job's id stands for one sandbox's job only", async ({ fleet }) => {
    const berth = fleet.client();
    await berth.tenant("acme").exec("true", { id: "mine" }).enqueued();
    await expect(berth.tenant("globex").exec("true", { id: "mine" }).enqueued()).rejects.toMatchObject({
      code: "job-id-taken",
    });
  });

  test("a job's id stands for one request only, whether the job waits, has ended, or is due later", async ({
    fleet,
  }) => {
    const acme = fleet.client().tenant("acme");
    const again = (command: string, more: object) => acme.exec(command, { id: "mine", ...more }).enqueued();
    const taken = { code: "job-id-taken", context: { jobId: "mine", sandboxKey: "acme" } };
    await acme.exec("echo first", { id: "mine" }).enqueued();
    // Labels and priority may differ: the request is the same.
    expect(await again("echo first", { priority: 3, labels: { by: "me" } })).toMatchObject({ isNew: false });
    await expect(again("echo second", {})).rejects.toMatchObject(taken);
    await expect(again("echo second", { delayMs: 60_000 })).rejects.toMatchObject(taken);
    await fleet.worker("worker-1", busybox);
    expect((await acme.exec("echo first", { id: "mine" })).stdout).toBe("first\n");
    expect((await acme.exec("echo first", { id: "mine" })).stdout).toBe("first\n");
    await expect(again("echo second", {})).rejects.toMatchObject(taken);
    await acme.exec("echo later", { id: "later", delayMs: 60_000 }).enqueued();
    await expect(acme.exec("echo sooner", { id: "later", delayMs: 1_000 }).enqueued()).rejects.toMatchObject({
      code: "job-id-taken",
    });
  });
});

describe("worker", () => {
  test("a worker answers pings, and leaves when it is drained", async ({ fleet }) => {
    const worker = await fleet.worker("worker-1", { ...busybox, BERTH_MAX_SANDBOXES: "3" });
    const berth = fleet.client();
    await berth.tenant("acme").exec("true");
    expect(await berth.ping("worker-1")).toMatchObject({ slots: 3, held: 1, health: "ok" });
    expect(await berth.workers()).toMatchObject([{ id: "worker-1", slots: 3, pools: ["default"] }]);
    const scale = { workers: 1, slots: 3, freeSlots: 2, waitingSandboxes: 0 };
    await expect.poll(() => berth.scale()).toMatchObject(scale);
    await berth.drain("worker-1");
    expect(await worker.ended()).toBe(0);
    await expect(berth.ping("worker-1")).rejects.toMatchObject({ code: "no-answer" });
    expect(await berth.workers()).toEqual([]);
    const job = await berth.tenant("acme").exec("true").enqueued();
    expect((await berth.why(job.id)).reasons).toContain("no worker of the pool default is there");
    expect(await berth.scale()).toMatchObject({ workers: 0, waitingSandboxes: 1, unfinishedJobs: 1 });
  });
});

describe("sandbox", () => {
  test("a sandbox that is destroyed loses its files, and the next job finds an empty one", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.exec("mkdir -p a/b; echo x > a/b/c; ln -s /etc/passwd link; chmod 0 a/b/c; touch .hidden");
    expect((await acme.destroy()).outcome).toEqual({ kind: "done" });
    expect((await acme.exec("ls -A | wc -l")).stdout?.trim()).toBe("0");
  });

  test("a sandbox stays in the pool of its first job, and only workers of that pool take it", async ({
    fleet,
  }) => {
    await fleet.worker("plain", busybox);
    const berth = fleet.client();
    await berth.tenant("acme").grant({ pools: ["gpu"] });
    const job = await berth.tenant("acme").exec("echo gpu", { pool: "gpu" }).enqueued();
    await expect
      .poll(async () => (await berth.why(job.id)).reasons)
      .toContain("no worker of the pool gpu is there");
    await expect(berth.tenant("acme").exec("true", { pool: "other" }).enqueued()).rejects.toMatchObject({
      code: "wrong-pool",
    });
    await fleet.worker("special", { ...busybox, BERTH_POOLS: "gpu" });
    expect((await job.result).value.stdout).toBe("gpu\n");
    // Without a pool of its own a job goes where its sandbox is.
    expect((await berth.tenant("acme").exec("echo there")).stdout).toBe("there\n");
    expect(await berth.sandboxes()).toMatchObject([{ key: "acme", worker: "special", pool: "gpu" }]);
    // The worker checks the grant of jobs of every door, also of those that name no pool.
    const refused = { kind: "refused", code: "not-granted" };
    expect((await berth.tenant("globex").exec("true", { pool: "gpu" })).outcome).toMatchObject(refused);
    expect(await berth.tenant("acme").revoke({ pools: ["gpu"] })).toEqual({
      profiles: ["default"],
      pools: ["default"],
      peers: [],
    });
    expect((await berth.tenant("acme").exec("echo there")).outcome).toMatchObject(refused);
    expect((await berth.tenant("acme").destroy()).outcome).toEqual({ kind: "done" });
  });

  test("a sandbox whose only job is cancelled no longer counts as waiting, and the next worker does not take it", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    for (const tenant of ["acme", "globex"]) await berth.tenant(tenant).grant({ pools: ["gpu"] });
    const job = await berth.tenant("acme").exec("true", { pool: "gpu" }).enqueued();
    expect((await berth.scale()).waitingSandboxes).toBe(1);
    expect(await berth.cancel(job.id)).toBe(true);
    expect((await job.result).outcome.kind).toBe("cancelled");
    await expect.poll(async () => (await berth.scale()).waitingSandboxes).toBe(0);
    // Its offer is still there, before the next one's.
    const next = berth.tenant("globex").exec("echo served", { pool: "gpu" });
    await fleet.worker("worker-1", { ...busybox, BERTH_POOLS: "gpu" });
    expect((await next).stdout).toBe("served\n");
    expect(await berth.sandboxes({ tenant: "acme" })).toMatchObject([{ epoch: 0, worker: undefined }]);
    expect((await berth.tenant("acme").exec("echo again")).stdout).toBe("again\n");
  });

  test("a sandbox stays on the host that has its workspace", async ({ fleet }) => {
    const first = await fleet.worker("worker-a", { ...busybox, BERTH_HOST: "host-a" });
    const berth = fleet.client();
    await berth.tenant("acme").write("kept", "here");
    first.signal("SIGTERM");
    await first.ended();
    await fleet.worker("worker-b", { ...busybox, BERTH_HOST: "host-b" });
    const job = await berth.tenant("acme").read("kept").enqueued();
    await expect
      .poll(async () => (await berth.why(job.id)).reasons)
      .toContain("its workspace is on the host host-a, which is offline");
    expect((await berth.tenant("globex").exec("echo ok")).stdout).toBe("ok\n");
    expect(await job.status()).toBe("waiting");
    await fleet.worker("worker-c", { ...busybox, BERTH_HOST: "host-a" });
    expect((await job.result).value.content).toBe("here");
  });
});

test("a queue that was unused for long leaves Redis, and nothing else does", async ({ fleet }) => {
  const worker = await fleet.worker("worker-1", busybox);
  const berth = fleet.client();
  const job = await berth.tenant("acme").exec("echo once").enqueued();
  await job.result;
  const redis = fleet.redis.connect();
  const queueKeys = () => redis.keys("berth:{acme}:jobs:*");
  expect(await forgetIdleQueues(redis, { idleMs: 0, limit: 10 })).toEqual([]);
  worker.signal("SIGTERM");
  await worker.ended();
  expect((await queueKeys()).length).toBeGreaterThan(0);
  const epoch = await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "epoch");
  expect(await forgetIdleQueues(redis, { idleMs: 3_600_000, limit: 10 })).toEqual([]);
  await expect.poll(() => forgetIdleQueues(redis, { idleMs: 1_000, limit: 10 })).toEqual(["acme"]);
  expect(await queueKeys()).toEqual([]);
  expect(await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "epoch")).toBe(epoch);
  expect((await (await berth.job(job.id))?.result)?.value.stdout).toBe("once\n");
  await fleet.worker("worker-1", busybox);
  expect((await berth.tenant("acme").exec("echo again")).stdout).toBe("again\n");
});
