import { redisKeys, type SandboxKey, sandboxKey, tenantOf, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { Leases } from "../src/leases/leases.ts";
import { Renewals } from "../src/leases/renewals.ts";

const holder = { worker: workerId.parse("w1"), instance: "i1" };
const lengthMs = 60_000;

async function holdMany(redis: Redis, many: number) {
  const leases = new Leases(redis);
  const held: { readonly key: SandboxKey; readonly epoch: number }[] = [];
  for (let index = 0; index < many; index++) {
    const key = sandboxKey.parse(`tenant-${index}`);
    const taken = await leases.take(key, holder, 1_000);
    if (!taken.taken) throw new Error(`the lease cannot be taken: ${taken.why}`);
    held.push({ key, epoch: taken.epoch });
  }
  return { leases, held, renewals: new Renewals(leases, holder.instance, lengthMs) };
}

async function scriptCalls(redis: Redis): Promise<number> {
  const stats = await redis.info("commandstats");
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

describe("renewals of one worker", () => {
  test("renewals that one worker requests together are sent as one call for 50 leases", async ({ redis }) => {
    const commands = redis.connect();
    const { held, renewals } = await holdMany(commands, 120);
    const before = await scriptCalls(commands);
    const answers = await Promise.all(held.map(({ key, epoch }) => renewals.renew(key, epoch)));
    expect((await scriptCalls(commands)) - before).toBe(3);
    expect(answers.map(({ state }) => state)).toEqual(held.map(() => "renewed"));
    for (const [index, { key }] of held.entries()) {
      const deadline = await commands.hget(redisKeys.lease(key), "deadline");
      expect(answers[index]).toMatchObject({ deadlineMs: Number(deadline) });
      expect(await commands.zscore(redisKeys.leases, key)).toBe(deadline);
    }
  });

  test("each renewal gets its own answer: renewed, paused or lost", async ({ redis }) => {
    const commands = redis.connect();
    const { leases, held, renewals } = await holdMany(commands, 4);
    const [kept, paused, released, taken] = held;
    if (!kept || !paused || !released || !taken) throw new Error("four are held");
    await leases.pause(tenantOf(paused.key));
    await leases.release(released.key, { ...released, ...holder }, { onlyIfEmpty: true, queueKeys: [] });
    const successor = { ...holder, instance: "i2", predecessor: holder.instance };
    const next = await leases.take(taken.key, successor, lengthMs);
    const answers = await Promise.all(held.map(({ key, epoch }) => renewals.renew(key, epoch)));
    expect(answers).toEqual([
      { state: "renewed", deadlineMs: expect.any(Number) },
      { state: "paused", deadlineMs: expect.any(Number) },
      { state: "lost", highestEpoch: released.epoch },
      { state: "lost", highestEpoch: next.taken && next.epoch },
    ]);
    expect(await commands.zscore(redisKeys.leases, released.key), "a lost lease is not listed").toBeNull();
  });

  test("all renewals of one call fail when Redis refuses it, and later renewals are sent again", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { held, renewals } = await holdMany(commands, 3);
    const ask = () => Promise.allSettled(held.map(({ key, epoch }) => renewals.renew(key, epoch)));
    await commands.config("SET", "min-replicas-to-write", "1");
    expect((await ask()).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    await commands.config("SET", "min-replicas-to-write", "0");
    expect((await ask()).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  });
});
