import {
  type Holder,
  type Holding,
  Leases,
  SharedHomes,
  submitJob,
  unfinishedKeys,
  WorkerIds,
  type WorkerStatus,
} from "@berth/ledger";
import {
  job as jobSchema,
  redisKeys,
  type SandboxKey,
  sandboxKey,
  tenantOf,
  workerId,
} from "@berth/protocol";
import { type Redis, refusesWrites } from "@berth/redis";
import { describe, expect } from "vitest";
import { type TestTopology, test } from "../support/redis.ts";

const one = { worker: workerId.parse("worker-1"), instance: "a" };
const two = { worker: workerId.parse("worker-2"), instance: "b" };
let made = 0;
const newKey = (): SandboxKey => sandboxKey.parse(`tenant-${made++}`);
let submitted = 0;
/** Gives the sandbox a job. */
const mark = (redis: Redis, key: SandboxKey) => {
  const request = { kind: "exec", command: "true" };
  const job = jobSchema.parse({ version: 1, id: `job-${submitted++}`, tenant: tenantOf(key), request });
  return submitJob(redis, key, job);
};
/** On a busy machine a cluster takes longer for two thousand at once than a command may take. */
const atOnce = 100;
/** All at once; on a cluster so many at a time. */
async function flood(
  topology: TestTopology,
  keys: readonly SandboxKey[],
  send: (key: SandboxKey) => Promise<unknown>,
): Promise<void> {
  const size = topology === "cluster" ? atOnce : keys.length;
  for (let from = 0; from < keys.length; from += size)
    await Promise.all(keys.slice(from, from + size).map(send));
}
/** Every page, as a sweep that goes on and on would see them. */
async function allUnheld(leases: Leases, { limit = 100, olderThanMs = 0 } = {}): Promise<SandboxKey[]> {
  const found: SandboxKey[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = await leases.unheld({ after, limit, olderThanMs });
    found.push(...page.keys);
    after = page.next;
  }
  return found;
}
const renewed = { state: "renewed" };
/** One lease by itself. */
async function renew(leases: Leases, key: SandboxKey, { epoch, instance }: Holding, lengthMs: number) {
  const [answer] = await leases.renew([{ key, epoch }], instance, lengthMs);
  return answer;
}
const nothingQueued = { onlyIfEmpty: true, queueKeys: [] };

/** Takes it, and gives back what its holder proves itself with. */
async function taken(leases: Leases, key: SandboxKey, holder: Holder, lengthMs: number): Promise<Holding> {
  const answer = await leases.take(key, holder, lengthMs);
  if (!answer.taken) throw new Error(`${key} is not to be had: ${answer.why}`);
  return { epoch: answer.epoch, instance: holder.instance };
}

/** A worker's heartbeat, where the test does not look at what it says. */
const status: WorkerStatus = {
  host: "host",
  machine: "machine",
  pid: 1,
  pools: ["default"],
  slots: 1,
  version: "0",
  held: 0,
  running: 0,
  parked: 0,
  parkedBytes: 0,
  warm: 0,
  warmWhy: "",
  quotaWhy: "",
  openNetworks: [],
  link: "none",
  disk: "ok",
  health: "ok",
  load: 0,
};

describe("lease", () => {
  test("a lease is one worker's at a time, and its epoch grows with every holder", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const first = await taken(leases, key, one, 10_000);
    expect(await leases.take(key, two, 10_000)).toMatchObject({ taken: false, why: "held", by: "worker-1" });
    expect(await leases.release(key, first, nothingQueued)).toEqual({ state: "released", left: 0 });
    expect((await taken(leases, key, two, 10_000)).epoch).toBeGreaterThan(first.epoch);
  });

  test("a lease taken by twenty at once is given to one", async ({ redis }) => {
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
    expect(await renew(new Leases(redis.connect()), key, holding, 10_000)).toMatchObject(renewed);
  });

  test("a lease that ran out can be taken, and its old holder can no longer renew or release", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const old = await taken(leases, key, one, 1);
    let next: Holding | undefined;
    await expect
      .poll(async () => (next = await taken(leases, key, two, 10_000).catch(() => undefined)))
      .toBeDefined();
    const highestEpoch = next?.epoch ?? 0;
    expect(await renew(leases, key, old, 10_000)).toEqual({ state: "lost", highestEpoch });
    expect(await leases.release(key, old, nothingQueued)).toEqual({ state: "lost", highestEpoch });
    expect(await renew(leases, key, { epoch: highestEpoch, instance: "b" }, 10_000)).toMatchObject(renewed);
  });

  test("a lease that expired is renewed all the same while no other worker took it", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const holding = await taken(leases, key, one, 1);
    await expect.poll(() => mark(redis.connect(), key)).toMatchObject({ live: false });
    expect(await renew(leases, key, holding, 10_000)).toMatchObject(renewed);
    expect(await mark(redis.connect(), key)).toMatchObject({ live: true });
  });

  test("a lease is taken again at once by its own worker whose earlier process is known to be dead", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const old = await taken(leases, key, one, 10_000);
    const successor = { ...one, instance: "restarted", predecessor: one.instance };
    expect((await taken(leases, key, successor, 10_000)).epoch).toBeGreaterThan(old.epoch);
    expect(await renew(leases, key, old, 10_000)).toMatchObject({ state: "lost" });
  });

  test("a lease of a dead process is taken over by a repeated call too, and not after it was given up", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    await taken(leases, key, one, 10_000);
    const successor = { ...one, instance: "restarted", predecessor: one.instance };
    expect(await leases.take(key, successor, 10_000)).toMatchObject({ takenOver: true });
    const again = await leases.take(key, successor, 10_000);
    if (!again.taken) throw new Error(again.why);
    expect(again.takenOver).toBe(true);
    const holding = { epoch: again.epoch, instance: successor.instance };
    await leases.release(key, holding, { onlyIfEmpty: false, queueKeys: [] });
    expect(await leases.take(key, successor, 10_000)).toMatchObject({ takenOver: false });
  });

  test("a lease of an earlier process that may still run has to expire, as any other worker's", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const { epoch } = await taken(leases, key, one, 10_000);
    const other = { ...one, instance: "second" };
    expect(await leases.take(key, other, 10_000)).toMatchObject({ taken: false, why: "held" });
    expect(await leases.take(key, { ...other, predecessor: "older" }, 10_000)).toMatchObject({
      taken: false,
    });
    expect((await taken(leases, key, one, 10_000)).epoch).toBeGreaterThan(epoch);
  });

  test("a lease is not given to a process whose worker id another one has", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const ids = new WorkerIds(client);
    const key = newKey();
    const worker = workerId.parse(`worker-of-${key}`);
    const [first, second] = [
      { worker, instance: "first" },
      { worker, instance: "second" },
    ];
    const words = { keptMs: 10_000, seen: true, status };
    expect(await ids.claim(first, words)).toEqual({ ours: true });
    expect(await ids.claim(second, words)).toEqual({ ours: false, by: "first" });
    expect(await ids.claim(second, { ...words, replacing: "first" })).toEqual({ ours: true });
    expect(await leases.take(key, first, 10_000)).toEqual({ taken: false, why: "replaced", by: "second" });
    expect(await leases.take(key, second, 10_000)).toMatchObject({ taken: true });
    expect(await ids.claim(first, words)).toEqual({ ours: false, by: "second" });
    expect(await ids.leave(first)).toBe(false);
    expect(await ids.leave(second)).toBe(true);
  });

  test("a lease of a Redis that lost its last second is not two processes' at once", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const before = await taken(leases, key, one, 10_000);
    // As restored from before the take: without a holder, and with a lower epoch.
    await client.hset(redisKeys.lease(key), {
      worker: "",
      instance: "",
      epoch: before.epoch - 5,
      deadline: 0,
    });
    await expect.poll(() => Date.now()).toBeGreaterThan(before.epoch);
    const after = await taken(leases, key, two, 10_000);
    expect(after.epoch).toBeGreaterThan(before.epoch);
    // If an epoch comes twice all the same, the two holders differ by their instance.
    const impostor = { epoch: after.epoch, instance: before.instance };
    for (const stale of [before, impostor]) {
      expect(await renew(leases, key, stale, 10_000)).toEqual({ state: "lost", highestEpoch: after.epoch });
      expect(await leases.release(key, stale, nothingQueued)).toMatchObject({ state: "lost" });
    }
    expect(await renew(leases, key, after, 10_000)).toMatchObject(renewed);
  });

  test("a lease that ran out while Redis refused writes is its holder's for a lease's length after the last refusal", async ({
    redis,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "a refusal counts as a renewal on one server only");
    const client = redis.connect();
    const [leases, ids] = [new Leases(client), new WorkerIds(client)];
    const [kept, left] = [newKey(), newKey()];
    const worker = workerId.parse("heartbeats");
    const beat = () => ids.claim({ worker, instance: "h" }, { keptMs: 60_000, seen: false, status });
    await beat();
    const lengthMs = 600;
    const holding = await taken(leases, kept, one, lengthMs);
    await taken(leases, left, one, lengthMs);
    await redis.refuseWrites();
    await expect.poll(() => renew(leases, kept, holding, lengthMs).catch(refusesWrites)).toBe(true);
    await redis.acceptWrites();
    const ranOut = async () => Number(await client.zscore(redisKeys.leases, left)) < Date.now();
    await expect.poll(ranOut).toBe(true);
    const since = Date.now();
    // Sent together, so that Redis carries out one right behind the other, however slow this process is.
    const [, early] = await Promise.all([beat(), leases.take(kept, two, lengthMs)]);
    expect(early).toMatchObject({ taken: false, why: "held" });
    expect(await renew(leases, kept, holding, 10_000)).toMatchObject(renewed);
    await expect.poll(async () => (await leases.take(left, two, 10_000)).taken).toBe(true);
    expect(Date.now() - since).toBeGreaterThanOrEqual(lengthMs - 1);
  });

  test("a lease cannot be taken for a lease's length after Redis restarted: it may have forgotten the holder", async ({
    redis,
  }) => {
    const client = redis.connect();
    const [leases, ids] = [new Leases(client), new WorkerIds(client)];
    const [known, forgotten] = [newKey(), newKey()];
    const worker = workerId.parse("heartbeats");
    const beat = () => ids.claim({ worker, instance: "h" }, { keptMs: 60_000, seen: false, status });
    await beat();
    const lengthMs = 600;
    const holding = await taken(leases, known, one, 60_000);
    await taken(leases, forgotten, one, 60_000);
    // As if Redis had lost the take with its last second.
    await client.del(redisKeys.lease(forgotten));
    await redis.kill();
    await redis.start();
    await beat();
    expect(Number(await client.hget(redisKeys.writes, "restarted")), "it was noticed").toBeGreaterThan(0);
    // The scripts are loaded again by now. Once more as if it had just restarted, with both sent together.
    await leases.take(newKey(), two, 1);
    await client.hset(redisKeys.writes, "run", "another");
    const since = Date.now();
    const [, early, own] = await Promise.all([
      beat(),
      leases.take(forgotten, two, lengthMs),
      leases.take(known, one, lengthMs),
    ]);
    expect(early).toMatchObject({ taken: false, why: "held" });
    // It may have given the lease up in the lost second, and another worker taken it.
    expect(own, "nor by the worker that Redis remembers").toMatchObject({ taken: false, why: "held" });
    expect(await renew(leases, known, holding, 60_000), "what it kept stays its holder's").toMatchObject(
      renewed,
    );
    await expect.poll(async () => (await leases.take(forgotten, two, lengthMs)).taken).toBe(true);
    expect(Date.now() - since).toBeGreaterThanOrEqual(lengthMs - 1);
  });

  test("a lease is given up only if the queue is empty, in one step", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const first = await taken(leases, key, one, 10_000);
    await mark(redis.connect(), key);
    await client.lpush(`list:{${key}}`, "job-1", "job-2");
    await client.zadd(`zset:{${key}}`, 1, "job-3");
    const queueKeys = [`list:{${key}}`, `missing:{${key}}`, `zset:{${key}}`];
    expect(await leases.release(key, first, { onlyIfEmpty: true, queueKeys })).toEqual({
      state: "kept",
      left: 3,
    });
    expect(await leases.release(key, first, { onlyIfEmpty: false, queueKeys })).toEqual({
      state: "released",
      left: 3,
    });
    await expect.poll(() => allUnheld(leases)).toContain(key);
    const second = await taken(leases, key, two, 10_000);
    await client.del(`list:{${key}}`, `zset:{${key}}`);
    expect(await leases.release(key, second, { onlyIfEmpty: true, queueKeys })).toEqual({
      state: "released",
      left: 0,
    });
    await expect.poll(() => allUnheld(leases)).not.toContain(key);
  });

  test("a lease keeps its epoch through a restart of Redis, and works without its scripts being loaded again", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const holding = await taken(leases, key, one, 10_000);
    await redis.kill();
    await redis.start();
    expect(await leases.take(key, two, 10_000)).toMatchObject({ taken: false, why: "held" });
    expect(await renew(leases, key, holding, 10_000)).toMatchObject(renewed);
  });
});

describe("where a sandbox starts", () => {
  const here = { ...one, home: "host-1" };
  const there = { ...two, home: "host-2" };

  test("the host on which a sandbox starts becomes its home; a worker that only took the lease leaves it without one", async ({
    redis,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const early = await taken(leases, key, here, 10_000);
    expect((await leases.offerTarget(key)).home).toBeUndefined();
    expect(await leases.startFailed({ key, ...early }, one.worker, 60_000)).toEqual(["worker-1"]);
    await leases.release(key, early, nothingQueued);
    const later = await taken(leases, key, there, 10_000);
    const failed = await leases.startFailed({ key, ...later }, two.worker, 60_000);
    expect(new Set(failed)).toEqual(new Set(["worker-1", "worker-2"]));
    expect(await leases.started(key, early, "host-1"), "it is another's by now").toBe(false);
    expect(await leases.started(key, later, "host-2")).toBe(true);
    expect((await leases.offerTarget(key)).home).toBe("host-2");
    const again = await leases.startFailed({ key, ...later }, two.worker, 60_000);
    expect(again, "a start forgets them").toEqual(["worker-2"]);
    await leases.release(key, later, nothingQueued);
    expect(await leases.take(key, here, 10_000)).toEqual({ taken: false, why: "elsewhere", by: "host-2" });
    expect(await leases.take(key, there, 10_000)).toMatchObject({ taken: true });
  });

  test("a worker whose failed start of a sandbox is long past may take it again", async ({ redis }) => {
    const leases = new Leases(redis.connect());
    const key = newKey();
    const { epoch } = await taken(leases, key, here, 10_000);
    await leases.startFailed({ key, epoch }, one.worker, 60_000);
    // Here a failure counts for a millisecond.
    await expect.poll(() => leases.startFailed({ key, epoch }, two.worker, 1)).toEqual(["worker-2"]);
  });
});

describe("what a holder notes of a sandbox", () => {
  const ok = { ok: true, how: "exited 0", output: "", wallMs: 1, endedAtMs: 1 } as const;

  test("a late holder notes nothing of a sandbox that another has taken, and no home", async ({ redis }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const early = await taken(leases, key, one, 10_000);
    await leases.note({ key, ...early }, "its own");
    await leases.release(key, early, nothingQueued);
    await leases.note({ key, ...early }, "still its own, since no other process has taken it");
    const later = await taken(leases, key, two, 10_000);
    await leases.note({ key, ...later }, "the next holder's");
    const before = await client.hgetall(redisKeys.lease(key));
    await leases.note({ key, ...early }, "late");
    await leases.note({ key, ...early }, undefined);
    await leases.noteSetUp({ key, ...early }, ok);
    expect(await leases.startFailed({ key, ...early }, one.worker, 60_000)).toBe("fenced");
    const homes = new SharedHomes(client);
    await expect(homes.sendTo({ key, ...early }, "tools", "host-9")).rejects.toMatchObject({
      code: "fenced",
    });
    expect(await client.hgetall(redisKeys.lease(key))).toEqual(before);
  });

  test("a late holder does not make a deleted lease again, and a holder writes its notes on a full Redis", async ({
    redis,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const held = await taken(leases, key, one, 10_000);
    await client.config("SET", "maxmemory", "1");
    await leases.note({ key, ...held }, "noted");
    await leases.noteSetUp({ key, ...held }, ok);
    await client.config("SET", "maxmemory", "0");
    expect(await client.hget(redisKeys.lease(key), "trouble")).toBe("noted");
    await client.del(redisKeys.lease(key));
    await leases.note({ key, ...held }, "late");
    await leases.noteSetUp({ key, ...held }, ok);
    expect(await leases.startFailed({ key, ...held }, one.worker, 60_000)).toBe("fenced");
    expect(await client.exists(redisKeys.lease(key))).toBe(0);
  });
});

describe("sweep's question", () => {
  test("the sweep finds pending sandboxes without a holder, the longest waiting first, and no others", async ({
    redis,
  }) => {
    const leases = new Leases(redis.connect());
    const [held, lapsed, waiting] = [newKey(), newKey(), newKey()];
    for (const key of [held, lapsed, waiting]) {
      await mark(redis.connect(), key);
      // A score of its own for each: Redis counts them in milliseconds.
      const marked = Date.now();
      await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(marked + 1);
    }
    await leases.take(held, one, 10_000);
    await leases.take(lapsed, one, 1);
    await expect
      .poll(async () => (await allUnheld(leases)).filter((key) => [held, lapsed, waiting].includes(key)))
      .toEqual([lapsed, waiting]);
    expect(await allUnheld(leases, { olderThanMs: 60_000 })).toEqual([]);
  });

  test("the sweep finds the one sandbox without a holder among two thousand held ones", async ({
    redis,
    topology,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const keys = Array.from({ length: 2000 }, newKey);
    await flood(topology, keys, (key) => mark(client, key));
    const lonely = keys[1999] as SandboxKey;
    const others = keys.filter((key) => key !== lonely);
    await flood(topology, others, (key) => leases.take(key, one, 60_000));
    expect(await allUnheld(leases)).toEqual([lonely]);
  });

  test("the sweep finds every waiting sandbox, page by page, though many were marked in the same millisecond", async ({
    redis,
    topology,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const keys = Array.from({ length: 250 }, newKey);
    await flood(topology, keys, (key) => mark(client, key));
    const first = await leases.unheld({ after: 0, limit: 10, olderThanMs: 0 });
    expect(first.keys.length).toBeGreaterThanOrEqual(10);
    expect(first.keys.length).toBeLessThan(250);
    const found = await allUnheld(leases, { limit: 10 });
    expect(found).toHaveLength(250);
    expect(new Set(found)).toEqual(new Set(keys));
  });
});

describe("expired lease", () => {
  test("an expired lease is reported once, if its sandbox has work and its tenant is not paused", async ({
    redis,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const [working, idle, paused, live] = [newKey(), newKey(), newKey(), newKey()];
    for (const key of [working, paused, live]) await mark(redis.connect(), key);
    const lapsed = await taken(leases, working, one, 1);
    for (const key of [idle, paused]) await leases.take(key, one, 1);
    await leases.take(live, one, 60_000);
    await leases.pause(tenantOf(paused));
    const found: SandboxKey[] = [];
    const leasesLeft = async () => {
      found.push(...(await leases.lapsed(100)));
      return await client.zcard(redisKeys.leases);
    };
    await expect.poll(leasesLeft).toBe(1);
    expect(await leasesLeft()).toBe(1);
    expect(found).toEqual([working]);
    expect(await renew(leases, working, lapsed, 60_000)).toMatchObject(renewed);
    expect(await allUnheld(leases)).toEqual([]);
    await leases.resume(tenantOf(paused));
    expect(await allUnheld(leases)).toEqual([paused]);
  });
});

describe("sandbox without jobs", () => {
  test("a sandbox without jobs is no longer pending once a worker looks, unless a worker holds it or a job has come", async ({
    redis,
  }) => {
    const client = redis.connect();
    const leases = new Leases(client);
    const key = newKey();
    const queue = unfinishedKeys(key);
    const isListed = async () => (await client.zscore(redisKeys.pending, key)) !== null;
    await mark(redis.connect(), key);
    expect(await leases.dropIdle(key, queue)).toBe(false);
    expect(await leases.isPending(key)).toBe(true);
    const holding = await taken(leases, key, one, 60_000);
    await client.unlink(...queue);
    expect(await leases.dropIdle(key, queue)).toBe(false);
    expect(await isListed()).toBe(true);
    await leases.release(key, holding, { onlyIfEmpty: false, queueKeys: [] });
    expect(await leases.dropIdle(key, queue)).toBe(true);
    await expect.poll(isListed).toBe(false);
    expect(await leases.isPending(key)).toBe(false);
  });
});
