import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EnqueuedJob } from "@berth/client";
import { JobEvents, Leases, queueKeys, takenKey, unfinishedKeys } from "@berth/ledger";
import { type JobResult, redisKeys, type SandboxKey, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

const key = sandboxKey.parse("acme");
const brisk = { ...busybox, BERTH_LEASE_MS: "2000", BERTH_SWEEP_MS: "250" };
const done: JobResult = { outcome: { kind: "done" }, value: {}, timing: { wallMs: 0, cpuMs: 0 } };

/** What expires a day after a job's end, and with an older version while it still ran. */
async function expire(redis: Redis, { id }: Pick<EnqueuedJob, "id">, of: SandboxKey = key): Promise<void> {
  const keys = [redisKeys.events(of, id), redisKeys.job(of, id), redisKeys.sandboxOf(id)];
  // On a cluster they are in more than one slot.
  for (const key of keys) await redis.del(key);
}

/** Lines of a file that each run of the command adds to. */
function runs(fleet: TestFleet): number {
  return readFileSync(join(fleet.workspaces, "acme", "ran"), "utf8").split("\n").length - 1;
}

const onceMore = (name: string) => `echo ${name} >> ran; sleep 60`;

/** How often a job is among the fleet's results. */
async function timesPublished(redis: Redis, { id }: EnqueuedJob): Promise<number> {
  const results = await redis.xrange(redisKeys.results, "-", "+");
  return results.filter(([, fields]) => fields[1] === id).length;
}

describe("job whose worker died", () => {
  test("a job whose worker died does not run a second time when its events are gone", async ({ fleet }) => {
    const worker = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const job = await acme.exec(onceMore("a")).enqueued();
    await expect.poll(() => job.status()).toBe("running");
    await expect.poll(() => runs(fleet)).toBe(1);
    const redis = fleet.redis.connect();
    expect(await redis.pttl(redisKeys.events(key, job.id)), "while it runs").toBe(-1);
    worker.signal("SIGKILL");
    await worker.ended();
    await redis.del(redisKeys.events(key, job.id));
    await fleet.worker("worker-1", brisk);
    expect((await job.result).outcome.kind).toBe("lost");
    expect(runs(fleet)).toBe(1);
  });

  test("a job with a published end and expired records leaves the queue, without another end", async ({
    fleet,
  }) => {
    const worker = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const job = await acme.exec(onceMore("a")).enqueued();
    await expect.poll(() => job.status()).toBe("running");
    await expect.poll(() => runs(fleet)).toBe(1);
    worker.signal("SIGSTOP");
    const redis = fleet.redis.connect();
    const [epoch, instance] = await redis.hmget(redisKeys.lease(key), "epoch", "instance");
    const to = { key, epoch: Number(epoch), instance: instance ?? "", jobId: job.id };
    const ends = { attempt: 1, leaves: false };
    expect(await new JobEvents(redis).publish({ ...to, ends }, [{ type: "finished", result: done }])).toBe(
      "published",
    );
    worker.signal("SIGKILL");
    await worker.ended();
    await expire(redis, job);
    await fleet.worker("worker-1", brisk);
    await expect.poll(() => redis.llen(takenKey(key))).toBe(0);
    expect((await acme.exec("true")).outcome.kind).toBe("exited");
    expect({ runs: runs(fleet), published: await timesPublished(redis, job) }).toEqual({
      runs: 1,
      published: 1,
    });
  });
});

describe("job cancelled while its tenant is paused", () => {
  test("a job that is taken, then cancelled while its tenant is paused, never runs", async ({ fleet }) => {
    await fleet.worker("worker-1", brisk);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const first = await acme.exec("sleep 2").enqueued();
    const parked = await Promise.all([1, 2, 3].map(() => acme.exec("touch ran").enqueued()));
    const redis = fleet.redis.connect();
    await expect.poll(() => redis.llen(takenKey(key))).toBe(4);
    await acme.pause();
    expect((await first.result).outcome.kind).toBe("exited");
    await expect.poll(async () => (await berth.sandboxes())[0]?.worker).toBeUndefined();
    for (const job of parked) await job.cancel();
    for (const job of parked) expect((await job.result).outcome.kind).toBe("cancelled");
    expect(await redis.exists(...unfinishedKeys(key)), "none is left in the queue").toBe(0);
    for (const job of parked) await expire(redis, job);
    await acme.resume();
    expect((await acme.exec("ls")).stdout).toBe("");
    for (const job of parked) expect(await timesPublished(redis, job)).toBe(1);
  });
});

const holder = { worker: workerId.parse("w"), instance: "i" };

/** Adds a job as a producer does, and begins it as a worker would that has taken it. */
async function setUp(fleet: TestFleet) {
  const redis = fleet.redis.connect();
  const taken = await new Leases(redis).take(key, holder, 60_000);
  if (!taken.taken) throw new Error("the sandbox is not to be had");
  const { id } = await fleet.client().tenant("acme").exec("true").enqueued();
  const events = new JobEvents(redis);
  const queue = queueKeys(key, id, 1);
  const to = { key, jobId: id, epoch: taken.epoch, instance: holder.instance };
  const begin = async (notAfterMs = taken.deadlineMs) =>
    await events.begin(
      to,
      { queuedId: queue.queuedId, before: [], notAfterMs },
      { worker: "w", epoch: taken.epoch, attempt: 1, atMs: 0 },
    );
  const cancel = () => events.cancel({ key, jobId: id, attempt: 1, inbox: undefined, queue }, done);
  return { redis, id, events, taken, queue, to, begin, cancel };
}

describe("cancelling", () => {
  test("cancelling marks a queue entry that is too far behind to be removed, and the job does not begin after its other records expired", async ({
    fleet,
  }) => {
    const { redis, id, cancel, begin, queue } = await setUp(fleet);
    const ahead = Array.from({ length: 10_001 }, (_, index) => `ahead-${index}`);
    await redis.rpush(`berth:{acme}:jobs:wait`, ...ahead);
    expect(await cancel()).toBe("ended");
    expect(await redis.lpos("berth:{acme}:jobs:wait", id)).not.toBeNull();
    await expire(redis, { id });
    await redis.lpush(takenKey(key), id);
    expect(await begin()).toBe("finished-before");
    expect(await redis.hget(queue.entryKey, "ended")).toContain("done");
    await redis.del("berth:{acme}:jobs:wait", takenKey(key));
  });

  test("a job that has begun is not forgotten while it waits to run again", async ({ fleet }) => {
    const { redis, id, begin, events, taken } = await setUp(fleet);
    await redis.lpush(takenKey(key), id);
    expect(await begin()).toBe("begun");
    const client = fleet.client();
    await client.cancel(id);
    expect(await events.unbegin(key, id, { worker: "w", epoch: taken.epoch, attempt: 1 })).toBe(true);
    expect(await begin()).toBe("cancelled");
    await redis.del(takenKey(key));
  });
});

describe("what is known of a job", () => {
  test("the records of a job expire only after its end", async ({ fleet }) => {
    const { redis, id, events, queue, to, begin } = await setUp(fleet);
    const lasting = async () => [
      await redis.pttl(redisKeys.events(key, id)),
      await redis.pttl(redisKeys.job(key, id)),
    ];
    // As an acceptance that was never followed by a mark leaves it.
    await redis.pexpire(redisKeys.job(key, id), 3_600_000);
    await redis.lpush(takenKey(key), id);
    expect(await begin()).toBe("begun");
    expect(await lasting(), "begun").toEqual([-1, -1]);
    await events.publish({ ...to, part: "1" }, [{ type: "stdout", bytes: Buffer.from("x") }]);
    expect(await lasting(), "printed").toEqual([-1, -1]);
    await events.publish({ ...to, ends: { attempt: 1, leaves: false } }, [
      { type: "finished", result: done },
    ]);
    expect(Math.min(...(await lasting())), "ended").toBeGreaterThan(3_600_000);
    expect(await redis.hget(queue.entryKey, "ended")).toBe(JSON.stringify(done.outcome));
    await redis.del(takenKey(key));
  });

  test("a job whose holder takes its beginning back counts as not begun", async ({ fleet }) => {
    const { redis, id, events, begin, taken } = await setUp(fleet);
    await redis.lpush(takenKey(key), id);
    const progress = async () => (await events.attemptProgress(key, id, 1)).state;
    // Redis was frozen when it was sent, and carries it out when its sender's lease is over.
    expect(await begin(Date.now() - 1_000)).toBe("late");
    expect(await progress()).toBe("not-started");
    expect(await begin()).toBe("begun");
    expect(await progress()).toBe("started");
    const { epoch } = taken;
    expect(await events.unbegin(key, id, { worker: "w", epoch: epoch - 1, attempt: 1 })).toBe(false);
    expect(await events.unbegin(key, id, { worker: "w", epoch, attempt: 1 })).toBe(true);
    expect(await progress()).toBe("not-started");
    await redis.del(takenKey(key));
  });
});
