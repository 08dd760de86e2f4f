import { fleetQueuePrefix, redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test as withFleet } from "../support/fleet.ts";

/** Three primaries with a replica each. A script may use keys of one hash slot only, and a call reaches one node. */
const test = withFleet.extend({ topology: "cluster" });
const brisk = { ...busybox, BERTH_LEASE_MS: "2000", BERTH_SWEEP_MS: "250", BERTH_IDLE_MS: "1000" };

describe("fleet on a Redis Cluster", () => {
  test("a fleet on a Redis Cluster runs commands, writes and reads files, and keeps artifacts", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    await acme.write("in.txt", "hello");
    const ran = await acme.exec("cat in.txt; echo more > out.txt", { artifacts: ["out.txt"] });
    expect(ran.stdout).toBe("hello");
    expect(await acme.read("out.txt")).toMatchObject({ content: "more\n" });
    expect(ran.artifacts).toMatchObject([{ path: "out.txt", size: 5 }]);
  });

  test("a fleet on a Redis Cluster keeps the order of a session, priorities, delays, retries and cancellations", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const first = await acme.exec("sleep 1; echo 1 >> order").enqueued();
    const later = await acme.exec("echo later >> order", { delayMs: 1_500 }).enqueued();
    const cancelled = await acme.exec("echo never >> order").enqueued();
    await cancelled.cancel();
    const second = await acme.exec("echo 2 >> order").enqueued();
    const again = await acme
      .exec("echo try >> tries; test $(wc -l < tries) -ge 2", {
        session: "other",
        retry: { attempts: 2, backoffMs: 100 },
      })
      .enqueued();
    expect((await cancelled.result).outcome.kind).toBe("cancelled");
    expect((await again.result).outcome).toEqual({ kind: "exited", code: 0 });
    await Promise.all([first.result, second.result, later.result]);
    expect((await acme.exec("cat order")).stdout).toBe("1\n2\nlater\n");
  });

  test("a fleet on a Redis Cluster runs a batch, a group of results, a schedule, and a dead letter again", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { ...brisk, BERTH_LEASE_MS: "8000" });
    const berth = fleet.client();
    const orders = Array.from({ length: 60 }, (_, index) => ({
      tenant: `tenant-${index % 4}`,
      request: { kind: "exec" as const, command: `echo ${index}` },
    }));
    const batch = berth.batch(orders, { id: "many", inFlight: 20 });
    const outputs: unknown[] = [];
    for await (const { index, result } of batch.results())
      outputs[index] = result.value.stdout ?? result.outcome;
    expect(outputs).toEqual(orders.map((_, index) => `${index}\n`));
    const ended = new Set<string>();
    for await (const { jobId, ack } of berth.results("billing", { consumer: "one" })) {
      await ack();
      if (ended.add(jobId).size === orders.length) break;
    }
    await berth.schedules.put({
      ...{ id: "beat", everyMs: 300, maxRuns: 2 },
      order: { tenant: "acme", request: { kind: "exec", command: "echo beat >> beats" } },
    });
    const beats = async () => (await berth.tenant("acme").exec("cat beats")).stdout;
    await expect.poll(beats).toBe("beat\nbeat\n");
    const failing = await berth.tenant("acme").exec("cat fixed", {
      ...{ id: "job-a", retry: { attempts: 2, backoffMs: 50 } },
    });
    expect(failing.outcome).toEqual({ kind: "exited", code: 1 });
    await expect.poll(() => berth.deadLetters.list()).toHaveLength(1);
    await berth.tenant("acme").write("fixed", "yes");
    const again = await berth.job(await berth.deadLetters.redrive("job-a"));
    expect((await again?.result)?.value.stdout).toBe("yes");
  });

  test("a fleet on a Redis Cluster is seen as it is: workers, sandboxes, what waits and why, a job's events", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const first = await berth.tenant("acme").exec("echo one; sleep 600").enqueued();
    expect((await berth.why(first.id)).codes).toContain("no-worker");
    expect(await berth.scale()).toMatchObject({ waitingSandboxes: 1, unfinishedJobs: 1, workers: 0 });
    await fleet.worker("worker-1", { ...brisk, BERTH_PARALLEL: "1" });
    const types: string[] = [];
    for await (const { type } of first.events()) {
      types.push(type);
      if (type === "stdout") break;
    }
    expect(types).toEqual(["started", "stdout"]);
    const behind = await berth.tenant("acme").exec("true").enqueued();
    expect(await berth.why(behind.id)).toMatchObject({ state: "waiting", heldBy: "worker-1" });
    // A worker reports its state with its next heartbeat.
    await expect.poll(() => berth.workers()).toMatchObject([{ id: "worker-1", held: 1, running: 1 }]);
    expect(await berth.sandboxes({ tenant: "acme" })).toMatchObject([{ key: "acme", unfinished: 2 }]);
    await berth.tenant("acme").pause();
    await first.cancel();
    expect((await first.result).outcome.kind).toBe("cancelled");
    expect((await berth.why(behind.id)).codes).toContain("tenant-paused");
    await berth.tenant("acme").resume();
    expect((await behind.result).outcome).toEqual({ kind: "exited", code: 0 });
  });

  test("a fleet on a Redis Cluster goes on while the slot of a tenant moves to another node, and fences no worker", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const before = await acme.exec("echo up; sleep 3; echo 1 >> order").enqueued();
    await expect.poll(() => before.status()).toBe("running");
    const waiting = await acme.exec("echo 2 >> order").enqueued();
    const handedOver = () => acme.exec("echo 3 >> order").enqueued();
    let during: ReturnType<typeof handedOver> | undefined;
    const lease = redisKeys.lease(sandboxKey.parse("acme"));
    const redis = fleet.redis.connect();
    const deadlineMs = async () => Number(await redis.hget(lease, "deadline"));
    await fleet.redis.moveSlot(lease, async () => {
      during = handedOver();
      // For longer than a lease, which is renewed all the same.
      const longerMs = (await deadlineMs()) + 2_500;
      await expect.poll(deadlineMs).toBeGreaterThan(longerMs);
    });
    await Promise.all([before.result, waiting.result, (await during)?.result]);
    expect((await acme.exec("cat order")).stdout).toBe("1\n2\n3\n");
    expect(worker.log).not.toContain("tenancy.fenced");
  });

  test("a fleet on a Redis Cluster finds work again that the index and the offers lost with their primary", async ({
    fleet,
  }) => {
    const redis = fleet.redis.connect();
    const forgotten = await fleet.client().tenant("acme").exec("true").enqueued();
    expect(await redis.zrem(redisKeys.pending, "acme")).toBe(1);
    const offers = await redis.keys(`${fleetQueuePrefix}:offers*`);
    expect(offers.length).toBeGreaterThan(0);
    await redis.unlink(...offers);
    await fleet.worker("worker-1", brisk);
    expect((await forgotten.result).outcome).toEqual({ kind: "exited", code: 0 });
  });

  test("a fleet on a Redis Cluster moves a dead worker's sandbox, empties every index, and delivers what its dead caller left", async ({
    fleet,
  }) => {
    const redis = fleet.redis.connect();
    const dead = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    const waiting = await acme.exec("sleep 600", { idempotent: true }).enqueued();
    await expect.poll(() => waiting.status()).toBe("running");
    dead.signal("SIGKILL");
    await fleet.worker("worker-2", brisk);
    await waiting.cancel();
    expect((await waiting.result).outcome.kind).toBe("cancelled");
    const undelivered = JSON.stringify([["ZADD", redisKeys.unfinished, "1", "left-behind"]]);
    await redis.xadd(redisKeys.outbox("acme"), "*", "commands", undelivered);
    await expect.poll(() => redis.xlen(redisKeys.outbox("acme"))).toBe(0);
    expect(await redis.zrem(redisKeys.unfinished, "left-behind")).toBe(1);
    for (const index of [redisKeys.pending, redisKeys.leases, redisKeys.unfinished])
      await expect.poll(() => redis.zcard(index), { message: index }).toBe(0);
    expect(await redis.hget(redisKeys.lease(sandboxKey.parse("acme")), "worker")).toBe("");
  });
});
