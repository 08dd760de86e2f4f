import { fleetQueuePrefix, redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue } from "bullmq";
import { expect } from "vitest";
import { type TestRedis, test } from "../../../test/support/redis.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { MarkerWaits } from "../src/queues/marker-waits.ts";
import { Offers, OfferTaker, type OfferTarget, offerQueueName } from "../src/queues/offers.ts";

const target: OfferTarget = { pool: "default", home: undefined };

/** `acme.s-3` is that session's sandbox. */
function session(tenant: string, index: number) {
  return sandboxKey.parse(`${tenant}.s-${index}`);
}

async function offerMany(offers: Offers, tenant: string, count: number, from = 0): Promise<void> {
  for (let index = 0; index < count; index++) await offers.add(session(tenant, from + index), target);
}

/** Takes so many offers. */
async function take(taker: OfferTaker, count: number): Promise<string[]> {
  const taken: string[] = [];
  for (let index = 0; index < count; index++) {
    const offer = await taker.next();
    await offer?.acknowledge();
    taken.push(offer?.key ?? "nothing");
  }
  return taken;
}

function tenants(keys: readonly string[]): string[] {
  return keys.map((key) => key.split(".")[0] ?? "");
}

async function using<T>(
  redis: TestRedis,
  run: (offers: Offers, taker: OfferTaker, commands: Redis) => Promise<T>,
): Promise<void> {
  const commands = redis.connect();
  const offers = new Offers(commands);
  const taker = new OfferTaker(commands, "taker", target, new MarkerWaits(commands, "taker"));
  await run(offers, taker, commands);
  await taker.close();
  await offers.close();
}

async function comesFirst({ redis }: { readonly redis: TestRedis }): Promise<void> {
  await using(redis, async (offers, taker) => {
    await offerMany(offers, "flood", 300);
    await take(taker, 3);
    await offers.add(sandboxKey.parse("acme"), target);
    expect(await offers.before(sandboxKey.parse("acme"), target)).toBe(0);
    expect(await offers.before(session("flood", 3), target)).toBe(1);
    expect(await offers.waiting([target])).toBe(298);
    expect(await take(taker, 3)).toEqual(["acme", "flood.s-3", "flood.s-4"]);
  });
}

test("a tenant's first offer is taken before those of another's hundreds of sandboxes", comesFirst);

test.extend({ topology: "cluster" })(
  "on a cluster a tenant's first offer is taken before those of another's hundreds of sandboxes",
  comesFirst,
);

test("offers rotate by tenant, and those of one tenant keep their order", async ({ redis }) => {
  await using(redis, async (offers, taker) => {
    await offerMany(offers, "flood", 20);
    expect(await take(taker, 10)).toEqual(Array.from({ length: 10 }, (_, index) => session("flood", index)));
    await offerMany(offers, "acme", 4);
    await offerMany(offers, "globex", 2);
    expect(await take(taker, 16)).toEqual([
      ...["acme.s-0", "globex.s-0", "flood.s-10"],
      ...["flood.s-11", "acme.s-1", "globex.s-1"],
      ...["flood.s-12", "acme.s-2", "flood.s-13", "acme.s-3"],
      ...["flood.s-14", "flood.s-15", "flood.s-16", "flood.s-17", "flood.s-18", "flood.s-19"],
    ]);
  });
});

test("a tenant that is offered again after each turn shares the turns with one whose sandboxes wait", async ({
  redis,
}) => {
  await using(redis, async (offers, taker) => {
    await offerMany(offers, "flood", 20);
    const taken: string[] = [];
    for (let turn = 0; turn < 16; turn++) {
      await offers.add(sandboxKey.parse("acme"), target);
      taken.push(...(await take(taker, 1)));
    }
    expect(tenants(taken).filter((tenant) => tenant === "acme")).toHaveLength(8);
    expect(tenants(taken).join(" ")).not.toContain("acme acme");
  });
});

test("tenants that come one after the other are taken in the order in which they came", async ({ redis }) => {
  await using(redis, async (offers, taker) => {
    await offerMany(offers, "flood", 5);
    await take(taker, 2);
    for (const tenant of ["a", "b", "c"]) await offers.add(sandboxKey.parse(tenant), target);
    expect(await take(taker, 4)).toEqual(["a", "b", "c", "flood.s-2"]);
  });
});

test("a sandbox that is offered many times has one offer, and its tenant one turn", async ({ redis }) => {
  await using(redis, async (offers, taker) => {
    const acme = sandboxKey.parse("acme");
    const added = await Promise.all(Array.from({ length: 50 }, () => offers.add(acme, target)));
    expect(added.filter((isNew) => isNew)).toHaveLength(1);
    for (let sweep = 0; sweep < 5; sweep++) await offers.addAgain(acme, target);
    await offerMany(offers, "flood", 3);
    await offers.add(session("acme", 1), target);
    expect(await take(taker, 5)).toEqual(["acme", "flood.s-0", "flood.s-1", "acme.s-1", "flood.s-2"]);
  });
});

test("an offer that is put back is the next to be taken, by a taker that waits for it", async ({ redis }) => {
  await using(redis, async (offers, taker, commands) => {
    const other = new OfferTaker(commands, "other", target, new MarkerWaits(commands, "other"));
    await offers.add(sandboxKey.parse("acme"), target);
    const offer = await taker.next();
    expect(await other.next()).toBeUndefined();
    const waits = other.next();
    await offer?.putBack();
    await offers.add(sandboxKey.parse("globex"), target);
    const again = await waits;
    expect(again?.key).toBe("acme");
    await again?.acknowledge();
    expect(await take(other, 1)).toEqual(["globex"]);
    await other.close();
  });
});

test("turns are removed when their round is over, so that their number does not grow with tenants", async ({
  redis,
}) => {
  await using(redis, async (offers, taker, commands) => {
    const turns = redisKeys.turns(offerQueueName(target));
    await offerMany(offers, "flood", 30);
    for (let index = 0; index < 25; index++) {
      await offers.add(sandboxKey.parse(`once-${index}`), target);
      // The newcomer, and one of the flood.
      await take(taker, 2);
    }
    expect(await commands.zcard(turns)).toBeLessThan(5);
    await take(taker, await offers.waiting([target]));
    await offers.add(session("flood", 99), target);
    expect(await commands.zrange(turns, "0", "-1", "WITHSCORES")).toEqual(["flood", "1"]);
    expect(await commands.pttl(turns)).toBeGreaterThan(0);
    await take(taker, 1);
  });
});

test("BullMQ sees an offer in the state that our script gave it, and one of an older version first", async ({
  redis,
}) => {
  await using(redis, async (offers, taker, commands) => {
    const queue = new Queue(offerQueueName(target), {
      ...{ connection: bullConnection(commands), prefix: fleetQueuePrefix, skipMetasUpdate: true },
    });
    await offers.add(sandboxKey.parse("acme"), target);
    const offer = await queue.getJob("o-acme");
    expect(offer).toMatchObject({ name: "offer", data: { key: "acme" }, priority: 1 });
    expect(await offer?.getState()).toBe("prioritized");
    const options = { jobId: "o-older", removeOnComplete: true, removeOnFail: true };
    await queue.add("offer", { key: "older" }, options);
    expect(await offers.waiting([target])).toBe(2);
    expect(await offers.before(sandboxKey.parse("older"), target)).toBe(0);
    expect(await offers.before(sandboxKey.parse("acme"), target)).toBe(1);
    expect(await take(taker, 2)).toEqual(["older", "acme"]);
    expect(await queue.getJobCounts("wait", "prioritized", "active", "completed", "failed")).toEqual({
      ...{ wait: 0, prioritized: 0, active: 0, completed: 0, failed: 0 },
    });
    expect(await offers.before(sandboxKey.parse("acme"), target)).toBeUndefined();
    await queue.close();
  });
});
