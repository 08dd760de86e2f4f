import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Berth } from "@berth/client";
import { markMemory } from "@berth/ledger";
import { isFault, redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { busybox, test as fleetTest } from "../support/fleet.ts";
import { type TestRedis, test } from "../support/redis.ts";

const key = sandboxKey.parse("acme");
/** On the primary that has the tenant's keys. */
const ballast = "ballast:{acme}";

describe("Redis that is full", () => {
  test("a Redis that is full refuses new jobs as redis-full, which passes, and takes them when there is room again", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    const acme = berth.tenant("acme");
    await acme.exec("true").enqueued();
    await admin.config("SET", "maxmemory", "1mb");
    const full = { name: "Fault", code: "redis-full", retry: true };
    // Asked before it is added; added without asking, since there was room a moment ago; put in the schedule.
    await expect(acme.exec("true", { id: "mine" }).enqueued()).rejects.toMatchObject(full);
    await expect(acme.exec("true").enqueued()).rejects.toMatchObject(full);
    await expect(acme.exec("true", { delayMs: 60_000 }).enqueued()).rejects.toMatchObject(full);
    const large = "x".repeat(400 * 1024);
    await expect(acme.write("large", large).enqueued()).rejects.toMatchObject(full);
    await admin.config("SET", "maxmemory", "0");
    expect(await (await acme.exec("true", { id: "mine" }).enqueued()).status()).toBe("waiting");
    await berth.close();
  });

  test("a Redis that is full is waited for by a batch", async ({ redis }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    await berth.tenant("acme").exec("true").enqueued();
    await admin.config("SET", "maxmemory", "1mb");
    const orders = [1, 2].map(() => ({
      tenant: "acme",
      request: { kind: "exec", command: "true" } as const,
    }));
    const batch = berth.batch(orders, { id: "full" });
    const reading = batch.results().next();
    const refusals = async () =>
      Number(/errorstat_OOM:count=(\d+)/.exec(await infoOf(redis, "errorstats"))?.[1] ?? 0);
    const before = await refusals();
    await expect.poll(refusals).toBeGreaterThan(before + 2);
    expect(batch.progress().submitted).toBe(0);
    await admin.config("SET", "maxmemory", "0");
    await expect.poll(() => batch.progress().submitted).toBe(2);
    await batch.cancel();
    expect(await reading).toMatchObject({ value: { result: { outcome: { kind: "cancelled" } } } });
    await berth.close();
  });
});

describe("Redis that is nearly full", () => {
  test("a Redis that is nearly full takes a job or refuses it, and takes a refused one later under its id", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    const acme = berth.tenant("acme");
    await acme.exec("true").enqueued();
    const accepted = new Set<string>();
    const refused = new Map<string, string>();
    for (let tries = 0; tries < 120; tries++) {
      const command = `true ${"x".repeat(20_000 + ((tries * 7_919) % 80_000))}`;
      // Room for a part of what adding, marking and offering need.
      const roomBytes = ((tries * 3_571) % 120_000) - 5_000;
      await admin.config("SET", "maxmemory", String((await usedBytes(redis)) + roomBytes));
      try {
        accepted.add((await acme.exec(command).enqueued()).id);
      } catch (error) {
        if (!isFault(error, "redis-full") || error.context.jobId === undefined) throw error;
        expect(error.context.accepted).toBe("no");
        expect(error.message).toContain(`the job ${error.context.jobId} was not accepted`);
        refused.set(error.context.jobId, command);
      }
    }
    await admin.config("SET", "maxmemory", "0");
    // Otherwise nothing of interest was tried.
    expect(accepted.size).toBeGreaterThan(5);
    expect(refused.size).toBeGreaterThan(5);
    for (const id of accepted)
      expect(await standing(admin, id)).toEqual({ added: "1", queued: 1, open: true });
    for (const id of refused.keys())
      expect(await standing(admin, id)).toEqual({ added: null, queued: 0, open: false });
    for (const [id, command] of refused) await acme.exec(command, { id }).enqueued();
    for (const id of refused.keys())
      expect(await standing(admin, id)).toEqual({ added: "1", queued: 1, open: true });
    await berth.close();
  });
});

describe("a Redis at 85 % of its maxmemory", () => {
  const brisk = { ...busybox, BERTH_SWEEP_MS: "250" };

  fleetTest(
    "a Redis at 85 % of its maxmemory refuses new jobs of every kind, and ends those that run and wait",
    async ({ fleet }) => {
      await fleet.worker("worker-1", brisk);
      const acme = fleet.client().tenant("acme");
      const admin = fleet.redis.connect();
      // So that a tenth of maxmemory is more than connections and arguments take.
      await admin.setrange(ballast, 40_000_000, "x");
      const running = await acme.exec("until [ -e go ]; do sleep 0.1; done; seq 1 1000").enqueued();
      const waiting = await acme.exec("echo next").enqueued();
      await expect.poll(() => running.status()).toBe("running");
      await admin.config("SET", "maxmemory", String(Math.floor((await usedBytes(fleet.redis)) / 0.9)));
      await expect.poll(() => admin.hexists(redisKeys.settings, "fullUntil")).toBe(1);
      const full = { code: "redis-full", retry: true, context: { accepted: "no" } };
      await expect(acme.exec("true", { id: "mine" }).enqueued()).rejects.toMatchObject(full);
      await expect(acme.exec("true", { delayMs: 60_000 }).enqueued()).rejects.toMatchObject(full);
      await expect(acme.write("large", "x".repeat(400 * 1024)).enqueued()).rejects.toMatchObject(full);
      expect(await admin.keys("berth:*:staged:*")).toEqual([]);
      // Known before: it is the same job.
      expect((await acme.exec("echo next", { id: waiting.id }).enqueued()).isNew).toBe(false);
      await writeFile(join(fleet.workspaces, "acme", "go"), "");
      expect((await running.result).value.stdout).toHaveLength(3_893);
      expect((await waiting.result).value.stdout).toBe("next\n");
      await admin.hset(redisKeys.settings, "fullAtPercent", 99);
      await expect.poll(() => admin.hexists(redisKeys.settings, "fullUntil")).toBe(0);
      expect((await acme.exec("true", { id: "mine" })).outcome).toEqual({ kind: "exited", code: 0 });
    },
  );

  test("a Redis at 85 % of its maxmemory takes jobs again when no worker has measured it for a while", async ({
    redis,
  }) => {
    const berth = new Berth({ redis: redis.url });
    const admin = redis.connect();
    // As above.
    await admin.setrange(ballast, 40_000_000, "x");
    await admin.config("SET", "maxmemory", String(Math.floor((await usedBytes(redis)) / 0.9)));
    expect(await markMemory(admin, 500)).toBe(true);
    const submit = () =>
      berth
        .tenant("acme")
        .exec("true")
        .enqueued()
        .then(
          () => "accepted",
          (fault) => fault.code,
        );
    expect(await submit()).toBe("redis-full");
    await expect.poll(submit).toBe("accepted");
    await berth.close();
  });

  test("a Redis without maxmemory is never marked as full", async ({ redis }) => {
    const admin = redis.connect();
    await admin.hset(redisKeys.settings, "fullAtPercent", 0);
    expect(await markMemory(admin, 60_000)).toBe(false);
  });
});

/** Of the primary that has the tenant's keys. */
async function infoOf(redis: TestRedis, section: string): Promise<string> {
  return (await redis.primaryOf(ballast)).ask((primary) => primary.info(section));
}

async function usedBytes(redis: TestRedis): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await infoOf(redis, "memory"))?.[1]);
}

/** What the fleet has of a job. */
async function standing(admin: Redis, id: string) {
  return {
    added: await admin.hget(redisKeys.job(key, id), "added"),
    queued: (await admin.lrange("berth:{acme}:jobs:wait", 0, -1)).filter((one) => one === id).length,
    open: (await admin.zscore(redisKeys.unfinished, id)) !== null,
  };
}
