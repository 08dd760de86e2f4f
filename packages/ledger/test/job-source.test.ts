import { redisKeys, sandboxKey, workerId } from "@berth/protocol";
import { connectRedis, type Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { CuttingProxy } from "../../../test/support/cutting-proxy.ts";
import { test } from "../../../test/support/redis.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { Leases } from "../src/leases/leases.ts";
import { fetchedAtOnce, JobSource } from "../src/queues/job-source.ts";
import { queuedId, takenKey } from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { Wakes } from "../src/queues/wakes.ts";
import { jobOf } from "./support.ts";

const key = sandboxKey.parse("acme");

/** Takes the lease for a worker's process, and reads the queue in its name. */
async function holderOf(redis: Redis, instance: string) {
  const answer = await new Leases(redis).take(key, { worker: workerId.parse(instance), instance }, 60_000);
  if (!answer.taken) throw new Error(`the lease cannot be taken: ${answer.why}`);
  const wakes = new Wakes(redis, instance);
  const source = new JobSource(redis, key, { epoch: answer.epoch, instance }, wakes);
  const stop = async () => {
    await source.close();
    wakes.stop();
  };
  return { source, stop, wakes, epoch: answer.epoch };
}

describe("job source", () => {
  test("a job source yields jobs in the order of submission, and those with a priority by urgency", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    await submitJob(commands, key, jobOf("late", { priority: 9 }));
    await submitJob(commands, key, jobOf("soon", { priority: 2 }));
    await submitJob(commands, key, jobOf("soon-too", { priority: 2 }));
    for (const id of ["a", "b"]) await submitJob(commands, key, jobOf(id));
    const ids: (string | undefined)[] = [];
    for (let index = 0; index < 5; index++) ids.push((await source.next(1_000))?.id);
    expect(ids).toEqual(["a", "b", "soon", "soon-too", "late"]);
    await stop();
  });

  test("a job source that waits is woken by a job, over the worker's one connection", async ({ redis }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    expect(await source.next(0)).toBeUndefined();
    const waiting = source.next(100_000);
    await submitJob(redis.connect(), key, jobOf("a"));
    expect((await waiting)?.id).toBe("a");
    await stop();
  });

  test("a job source begins the first job that it takes in the same step, for a holder that has nothing taken", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop, epoch } = await holderOf(commands, "w1");
    for (const id of ["a", "b", "c"])
      await submitJob(commands, key, jobOf(id, { attempt: id === "a" ? 2 : 1 }));
    let behind = 0;
    const beginning = () => ({ take: "take-1", data: JSON.stringify({ worker: "w1", epoch }), notAfterMs });
    const notAfterMs = Date.now() + 60_000;
    const next = () => source.next(1_000, { beginning, onBehind: () => behind++ });
    const taken = [await next(), await next(), await next()];
    expect(taken.map((held) => [held?.queuedId, held?.isBegun])).toEqual([
      ["a~2", true],
      ["b", false],
      ["c", false],
    ]);
    const events = new JobEvents(commands);
    const [started] = await events.read(key, jobOf("a").id, "");
    expect(started?.event).toEqual({ type: "started", worker: "w1", epoch, attempt: 2 });
    await submitJob(commands, key, jobOf("d"));
    expect(await next()).toMatchObject({ queuedId: "d", isBegun: false });
    expect(behind).toBe(1);
    const by = { worker: "w1", epoch, attempt: 2 };
    expect(await events.unbegin(key, jobOf("a").id, { ...by, takes: ["take-2"] })).toBe(false);
    expect(await events.unbegin(key, jobOf("a").id, { ...by, takes: ["take-2", "take-1"] })).toBe(true);
    await stop();
  });

  test.for(["cancelled", "late"])(
    "a job source takes a job that is %s without beginning it",
    async (why, { redis }) => {
      const commands = redis.connect();
      const { source, stop, epoch } = await holderOf(commands, "w1");
      await submitJob(commands, key, jobOf("a"));
      const events = new JobEvents(commands);
      if (why === "cancelled") await events.requestCancellation(key, jobOf("a").id);
      const notAfterMs = why === "late" ? Date.now() - 1_000 : Date.now() + 60_000;
      const data = JSON.stringify({ worker: "w1", epoch });
      const beginning = () => ({ take: "take-1", data, notAfterMs });
      const taken = await source.next(1_000, { beginning, onBehind: () => {} });
      expect(taken).toMatchObject({ id: "a", isBegun: false });
      expect(await events.read(key, jobOf("a").id, "")).toEqual([]);
      await stop();
    },
  );

  test("a job source that missed a wake-up finds the job when it looks by itself", async ({ redis }) => {
    const commands = redis.connect();
    const { source, stop, wakes } = await holderOf(commands, "w1");
    expect(await source.next(0)).toBeUndefined();
    wakes.stop();
    await submitJob(redis.connect(), key, jobOf("urgent", { priority: 1 }));
    expect((await source.next(0))?.id).toBe("urgent");
    await submitJob(redis.connect(), key, jobOf("plain"));
    await expect.poll(async () => (await source.next(0))?.id).toBe("plain");
    await stop();
  });

  test("a job source is woken after the peer of its worker's wake-up connection vanished without closing it", async ({
    redis,
  }) => {
    const proxy = new CuttingProxy(redis.path);
    await proxy.start();
    const commands = connectRedis({ url: `redis://${proxy.address}`, role: "patient" });
    const { source, stop } = await holderOf(commands, "w1");
    const direct = redis.connect();
    expect(await source.next(0)).toBeUndefined();
    const waiting = source.next(100_000);
    await expect.poll(async () => await direct.client("LIST")).toContain("cmd=bzmpop");
    proxy.silence();
    // Redis sends the wake-up to the dead connection.
    await submitJob(direct, key, jobOf("a"));
    expect((await waiting)?.id).toBe("a");
    await stop();
    commands.disconnect();
    await proxy.stop();
  });

  test("a job source takes nothing once another process holds the sandbox", async ({ redis }) => {
    const commands = redis.connect();
    const stale = await holderOf(commands, "w1");
    await commands.hset(redisKeys.lease(key), "deadline", 0);
    await commands.del(redisKeys.writes);
    await commands.hset(redisKeys.lease(key), { worker: "w2", instance: "w2", epoch: stale.epoch + 1 });
    await submitJob(commands, key, jobOf("a"));
    await expect(stale.source.next(0)).rejects.toThrow("no longer holds");
    expect(await commands.llen(takenKey(key))).toBe(0);
    await stale.stop();
  });

  test("a job source drops an id whose entry is gone, and goes on with the next", async ({ redis }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    await submitJob(commands, key, jobOf("ghost"));
    await submitJob(commands, key, jobOf("a"));
    await commands.del("berth:{acme}:jobs:ghost");
    expect((await source.next(0))?.id).toBe("a");
    expect(await commands.lrange(takenKey(key), 0, -1)).toEqual(["a"]);
    await stop();
  });

  test("a job source drops a taken id whose entry is gone, because no job taken after it could begin", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    for (const id of ["ghost", "a"]) await submitJob(commands, key, jobOf(id));
    await source.next(0);
    await commands.del("berth:{acme}:jobs:ghost");
    expect((await source.active()).map(({ id }) => id)).toEqual(["a"]);
    expect(await commands.lrange(takenKey(key), 0, -1)).toEqual(["a"]);
    await stop();
  });

  test("a job source returns jobs that it took ahead as active, and does not yield them a second time", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    for (const id of ["a", "b", "c"]) await submitJob(commands, key, jobOf(id));
    expect((await source.next(0))?.id).toBe("a");
    expect((await source.active()).map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(await source.next(0)).toBeUndefined();
    await stop();
  });
});

describe("job source past busy sessions", () => {
  test("a job source past busy sessions takes the first job of another session, priorities last", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    for (let index = 0; index < 1_200; index += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, one) => submitJob(commands, key, jobOf(`m${index + one}`))),
      );
    await submitJob(commands, key, jobOf("late", { session: "chat", priority: 1 }));
    for (const id of ["a", "b"]) await submitJob(commands, key, jobOf(id, { session: "chat" }));
    const picked: string[] = [];
    const beside = new Set(["main"]);
    await expect
      .poll(async () => {
        const held = await source.nextBeside(beside);
        if (held) picked.push(held.id);
        return picked;
      })
      .toEqual(["a", "b", "late"]);
    expect(await commands.lrange(takenKey(key), 0, -1)).toEqual(["late", "b", "a"]);
    expect((await source.next(0))?.id).toBe("m0");
    await stop();
  });

  test("a job source past busy sessions yields what it took ahead first, and nothing once it is fenced", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { source, stop, epoch } = await holderOf(commands, "w1");
    for (let index = 0; index <= fetchedAtOnce; index++) await submitJob(commands, key, jobOf(`m${index}`));
    await submitJob(commands, key, jobOf("a", { session: "chat" }));
    await source.next(0);
    const ahead: (string | undefined)[] = [];
    for (let index = 1; index < fetchedAtOnce; index++)
      ahead.push((await source.nextBeside(new Set(["main"])))?.id);
    expect(ahead).toEqual(Array.from({ length: fetchedAtOnce - 1 }, (_, index) => `m${index + 1}`));
    await commands.hset(redisKeys.lease(key), { worker: "w2", instance: "w2", epoch: epoch + 1 });
    await expect(source.nextBeside(new Set(["main"]))).rejects.toThrow("no longer holds");
    expect(await commands.llen(takenKey(key))).toBe(fetchedAtOnce);
    await stop();
  });
});

describe("submitting a job", () => {
  test("submitting a job twice adds it once, and a later attempt is another entry", async ({ redis }) => {
    const commands = redis.connect();
    expect(await submitJob(commands, key, jobOf("a"))).toMatchObject({ live: false, pool: "default" });
    expect(await submitJob(commands, key, jobOf("a"))).toBe("known");
    await submitJob(commands, key, { ...jobOf("a"), attempt: 2 });
    expect(await commands.lrange("berth:{acme}:jobs:wait", 0, -1)).toEqual([queuedId("a", 2), "a"]);
  });

  test("submitting a job changes nothing on a Redis without memory", async ({ redis }) => {
    const commands = redis.connect();
    await commands.config("SET", "maxmemory", "1");
    await expect(submitJob(commands, key, jobOf("a"))).rejects.toMatchObject({ code: "redis-full" });
    await commands.config("SET", "maxmemory", "0");
    expect(await commands.keys("berth:*")).toEqual([]);
    expect(await submitJob(commands, key, jobOf("a"))).toMatchObject({ live: false });
  });

  test("submitting a job again after its record expired replaces its finished entry", async ({ redis }) => {
    const commands = redis.connect();
    const { source, stop } = await holderOf(commands, "w1");
    await submitJob(commands, key, jobOf("a"));
    await (await source.next(0))?.complete();
    await commands.del(redisKeys.job(key, "a"), redisKeys.sandboxOf("a"));
    expect(await submitJob(commands, key, jobOf("a"))).toMatchObject({ live: true });
    expect(await commands.zcard("berth:{acme}:jobs:completed")).toBe(0);
    expect((await source.next(1_000))?.id).toBe("a");
    await stop();
  });
});
