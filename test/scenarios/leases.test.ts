import { type Holder, type Holding, Leases, WorkerIds } from "@berth/lease";
import { redisKeys, type SandboxKey, sandboxKey, workerId } from "@berth/protocol";
import { refusesWrites } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../support/redis.ts";

const one = { worker: workerId.parse("worker-1"), instance: "a" };
const two = { worker: workerId.parse("worker-2"), instance: "b" };
let made = 0;
const newKey = (): SandboxKey => sandboxKey.parse(`tenant-${made++}`);
const mark = (leases: Leases, key: SandboxKey) =>
  leases.mark(
    key,
    { id: `job-of-${key}`, attempt: 1, pool: "default", session: "main", kind: "exec" },
    { queueKeys: [], perSandbox: 10, inFleet: 100_000 },
  );
const nothingQueued = { onlyIfEmpty: true, queueKeys: [] };

/** Takes it, and gives back what its holder proves itself with. */
async function taken(leases: Leases, key: SandboxKey, holder: Holder, lengthMs: number): Promise<Holding> {
  const answer = await leases.take(key, holder, lengthMs);
  if (!answer.taken) throw new Error(`${key} is not to be had: ${answer.why}`);
  return { epoch: answer.epoch, instance: holder.instance };
}

describe("a lease", () => {
  test("is one worker's at a time, and its epoch grows with every holder", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const first = await taken(leases, key, one, 10_000);
    expect(await leases.take(key, two, 10_000)).toMatchObject({ taken: false, why: "held", by: "worker-1" });
    expect(await leases.release(key, first, nothingQueued)).toEqual({ state: "released", left: 0 });
    expect((await taken(leases, key, two, 10_000)).epoch).toBeGreaterThan(first.epoch);
  });

  test("taken by twenty at once is given to one", async ({ redis }) => {
    const key = newKey();
    const takers = Array.from({ length: 20 }, (_, index) => ({
      worker: workerId.parse(`w${index}`),
      instance: "x",
    }));
    const results = await Promise.all(
      takers.map((taker) => new Leases(redis.connect()).take(key, taker, 10_000)),
    );
    const won = results.filter((result) => result.taken);
    expect(won).toHaveLength(1);
    const holding = { epoch: won[0]?.epoch ?? 0, instance: "x" };
    expect((await new Leases(redis.connect()).renew(key, holding, 10_000)).renewed).toBe(true);
  });

  test("that ran out can be taken, and its old holder can no longer renew or release", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const old = await taken(leases, key, one, 1);
    let next: Holding | undefined;
    await expect
      .poll(async () => (next = await taken(leases, key, two, 10_000).catch(() => undefined)))
      .toBeDefined();
    const highestEpoch = next?.epoch ?? 0;
    expect(await leases.renew(key, old, 10_000)).toEqual({ renewed: false, highestEpoch });
    expect(await leases.release(key, old, nothingQueued)).toEqual({ state: "lost", highestEpoch });
    expect((await leases.renew(key, { epoch: highestEpoch, instance: "b" }, 10_000)).renewed).toBe(true);
  });

  test("that ran out is renewed all the same while nobody took it", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const holding = await taken(leases, key, one, 1);
    await expect.poll(async () => (await mark(leases, key)).live).toBe(false);
    expect((await leases.renew(key, holding, 10_000)).renewed).toBe(true);
    expect(await mark(leases, key)).toMatchObject({ live: true, epoch: holding.epoch, worker: "worker-1" });
  });

  test("is taken again at once by its own worker whose earlier life is known to be dead", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const old = await taken(leases, key, one, 10_000);
    const heir = { ...one, instance: "restarted", heirOf: one.instance };
    expect((await taken(leases, key, heir, 10_000)).epoch).toBeGreaterThan(old.epoch);
    expect((await leases.renew(key, old, 10_000)).renewed).toBe(false);
  });

  test("of an earlier life that may still live has to run out, as anybody else's", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const { epoch } = await taken(leases, key, one, 10_000);
    const other = { ...one, instance: "second" };
    expect(await leases.take(key, other, 10_000)).toMatchObject({ taken: false, why: "held" });
    expect(await leases.take(key, { ...other, heirOf: "older" }, 10_000)).toMatchObject({ taken: false });
    expect((await taken(leases, key, one, 10_000)).epoch).toBeGreaterThan(epoch);
  });

  test("is not given to a process whose worker id another one has", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const ids = new WorkerIds(client);
    const key = newKey();
    const worker = workerId.parse(`worker-of-${key}`);
    const [first, second] = [
      { worker, instance: "first" },
      { worker, instance: "second" },
    ];
    const words = { keptMs: 10_000, seen: true, says: {} };
    expect(await ids.claim(first, words)).toEqual({ ours: true });
    expect(await ids.claim(second, words)).toEqual({ ours: false, by: "first" });
    expect(await ids.claim(second, { ...words, replacing: "first" })).toEqual({ ours: true });
    expect(await leases.take(key, first, 10_000)).toEqual({ taken: false, why: "replaced", by: "second" });
    expect(await leases.take(key, second, 10_000)).toMatchObject({ taken: true });
    expect(await ids.claim(first, words)).toEqual({ ours: false, by: "second" });
    expect(await ids.leave(first)).toBe(false);
    expect(await ids.leave(second)).toBe(true);
  });

  test("of a Redis that lost its last second is not two processes' at once", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const before = await taken(leases, key, one, 10_000);
    // As restored from before the take: nobody has it, and its epoch is lower.
    await client.hset(redisKeys.lease(key), {
      worker: "",
      instance: "",
      epoch: before.epoch - 5,
      deadline: 0,
    });
    await expect.poll(() => Date.now()).toBeGreaterThan(before.epoch);
    const after = await taken(leases, key, two, 10_000);
    expect(after.epoch).toBeGreaterThan(before.epoch);
    // And should an epoch come twice all the same, the instance tells the two apart.
    const impostor = { epoch: after.epoch, instance: before.instance };
    for (const stale of [before, impostor]) {
      expect(await leases.renew(key, stale, 10_000)).toEqual({ renewed: false, highestEpoch: after.epoch });
      expect(await leases.release(key, stale, nothingQueued)).toMatchObject({ state: "lost" });
    }
    expect((await leases.renew(key, after, 10_000)).renewed).toBe(true);
  });

  test("that ran out while Redis refused writes is its holder's for a lease's length after the last refusal", async ({
    redis,
  }) => {
    const client = redis.connect();
    const [leases, ids] = [new Leases(client), new WorkerIds(client)];
    const [kept, left] = [newKey(), newKey()];
    const worker = workerId.parse("heartbeats");
    const beat = () => ids.claim({ worker, instance: "h" }, { keptMs: 60_000, seen: false, says: {} });
    await beat();
    const lengthMs = 600;
    const holding = await taken(leases, kept, one, lengthMs);
    await taken(leases, left, one, lengthMs);
    await redis.refuseWrites();
    await expect.poll(() => leases.renew(kept, holding, lengthMs).catch(refusesWrites)).toBe(true);
    await redis.acceptWrites();
    const ranOut = async () => Number(await client.zscore(redisKeys.leases, left)) < Date.now();
    await expect.poll(ranOut).toBe(true);
    await beat();
    const since = Date.now();
    expect(await leases.take(kept, two, lengthMs)).toMatchObject({ taken: false, why: "held" });
    expect((await leases.renew(kept, holding, 10_000)).renewed).toBe(true);
    await expect.poll(async () => (await leases.take(left, two, 10_000)).taken).toBe(true);
    expect(Date.now() - since).toBeGreaterThanOrEqual(lengthMs - 1);
  });

  test("is given up only if the queue is empty, in one step", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const first = await taken(leases, key, one, 10_000);
    await mark(leases, key);
    await client.lpush(`list:${key}`, "job-1", "job-2");
    await client.zadd(`zset:${key}`, 1, "job-3");
    const queueKeys = [`list:${key}`, `zset:${key}`, `missing:${key}`];
    expect(await leases.release(key, first, { onlyIfEmpty: true, queueKeys })).toEqual({
      state: "kept",
      left: 3,
    });
    expect(await leases.release(key, first, { onlyIfEmpty: false, queueKeys })).toEqual({
      state: "released",
      left: 3,
    });
    expect(await leases.unheld({ limit: 100, olderThanMs: 0 })).toContain(key);
    const second = await taken(leases, key, two, 10_000);
    await client.del(`list:${key}`, `zset:${key}`);
    expect(await leases.release(key, second, { onlyIfEmpty: true, queueKeys })).toEqual({
      state: "released",
      left: 0,
    });
    expect(await leases.unheld({ limit: 100, olderThanMs: 0 })).not.toContain(key);
  });

  test("keeps its epoch through a restart of Redis, and works without its scripts being loaded again", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const holding = await taken(leases, key, one, 10_000);
    await redis.kill();
    await redis.start();
    expect(await leases.take(key, two, 10_000)).toMatchObject({ taken: false, why: "held" });
    expect((await leases.renew(key, holding, 10_000)).renewed).toBe(true);
  });
});

describe("the sweep's question", () => {
  test("names pending sandboxes nobody holds, the longest waiting first, and no others", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const [held, lapsed, waiting] = [newKey(), newKey(), newKey()];
    for (const key of [held, lapsed, waiting]) {
      await mark(leases, key);
      // A score of its own for each: Redis counts them in milliseconds.
      const marked = Date.now();
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(marked + 1);
    }
    await leases.take(held, one, 10_000);
    await leases.take(lapsed, one, 1);
    await expect
      .poll(async () =>
        (await leases.unheld({ limit: 1000, olderThanMs: 0 })).filter((key) =>
          [held, lapsed, waiting].includes(key),
        ),
      )
      .toEqual([lapsed, waiting]);
    expect(await leases.unheld({ limit: 1, olderThanMs: 0 })).toHaveLength(1);
    expect(await leases.unheld({ limit: 1000, olderThanMs: 60_000 })).toEqual([]);
  });

  test("finds the one unheld among two thousand held", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const keys = Array.from({ length: 2000 }, newKey);
    await Promise.all(keys.map((key) => mark(leases, key)));
    const lonely = keys[1999] as SandboxKey;
    await Promise.all(keys.filter((key) => key !== lonely).map((key) => leases.take(key, one, 60_000)));
    const found = await leases.unheld({ limit: 100, olderThanMs: 0 });
    expect(found).toContain(lonely);
    expect(keys.filter((key) => key !== lonely && found.includes(key))).toEqual([]);
  });
});
