import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue, Worker } from "bullmq";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { MarkerWaits } from "../src/queues/marker-waits.ts";

const prefix = "test{queue}";

/** Queues that one process takes from, and the waits that they share. */
class Rig {
  readonly waits: MarkerWaits;
  readonly #redis: Redis;
  readonly #open: { close(): Promise<void> }[] = [];

  constructor(redis: Redis) {
    this.#redis = redis;
    this.waits = new MarkerWaits(redis, "rig");
  }

  queue(name: string): Queue {
    const queue = new Queue(name, { connection: bullConnection(this.#redis), prefix });
    this.#open.push(queue);
    return queue;
  }

  /** Its calls block for a minute, so that a test fails if it has to wait for the end of a call. */
  taker(name: string): Worker {
    const options = { connection: bullConnection(this.#redis), prefix, autorun: false, drainDelay: 60 };
    const worker = new Worker(name, undefined, options, this.waits.backend);
    worker.on("error", () => {});
    this.#open.push({ close: () => worker.close(true) });
    return worker;
  }

  /** Makes one call on an empty queue, so that the next call waits. */
  async waiting(name: string): Promise<Worker> {
    const worker = this.taker(name);
    expect(await worker.getNextJob("token")).toBeUndefined();
    return worker;
  }

  async close(): Promise<void> {
    for (const one of this.#open) await one.close();
  }
}

const test = withRedis.extend<{ client: Redis; rig: Rig }>({
  client: async ({ redis }, use) => {
    await use(redis.connect("blocking"));
  },
  rig: async ({ client }, use) => {
    const rig = new Rig(client);
    await use(rig);
    await rig.close();
  },
});

async function blockedCalls(client: Redis): Promise<number> {
  return Number(/blocked_clients:(\d+)/.exec(await client.info("clients"))?.[1]);
}

describe("waits for several queues", () => {
  test("workers of many queues wait over one connection, and each gets the entry of its own queue", async ({
    rig,
    client,
  }) => {
    const names = ["a", "b", "c", "d"];
    const takers = await Promise.all(names.map((name) => rig.waiting(name)));
    const taken = takers.map((taker) => taker.getNextJob("token"));
    await expect.poll(() => blockedCalls(client)).toBe(1);
    expect(String(await client.client("LIST")).match(/cmd=bzpopmin/g)).toHaveLength(1);
    for (const name of [...names].reverse()) await rig.queue(name).add("entry", { of: name });
    expect((await Promise.all(taken)).map((entry) => entry?.data)).toEqual(names.map((of) => ({ of })));
  });

  test("a worker that begins to wait while another waits already is woken at once", async ({
    rig,
    client,
  }) => {
    const first = await rig.waiting("a");
    const waits = first.getNextJob("token");
    await expect.poll(() => blockedCalls(client)).toBe(1);
    const second = (await rig.waiting("b")).getNextJob("token");
    await rig.queue("b").add("entry", { of: "b" });
    expect((await second)?.data).toEqual({ of: "b" });
    await rig.queue("a").add("entry", { of: "a" });
    expect((await waits)?.data).toEqual({ of: "a" });
    expect(await client.exists(redisKeys.waiting("rig"))).toBe(0);
  });

  test("the wake-up of a queue whose worker does not wait is left to another process", async ({
    rig,
    client,
  }) => {
    const busy = await rig.waiting("a");
    const idle = (await rig.waiting("b")).getNextJob("token");
    await expect.poll(() => blockedCalls(client)).toBe(1);
    await rig.queue("a").add("entry", {});
    await rig.queue("b").add("entry", {});
    await idle;
    expect(await client.exists(`${prefix}:a:marker`)).toBe(1);
    expect((await busy.getNextJob("token"))?.name).toBe("entry");
  });

  test("a worker that is closed while it waits takes nothing, and the last one closes the connection", async ({
    rig,
    client,
  }) => {
    const first = await rig.waiting("a");
    const second = await rig.waiting("b");
    const waits = [first.getNextJob("token"), second.getNextJob("token")];
    await expect.poll(() => blockedCalls(client)).toBe(1);
    await first.close(true);
    expect(await waits[0]).toBeUndefined();
    await rig.queue("a").add("entry", {});
    expect(await rig.queue("a").getWaitingCount()).toBe(1);
    await second.close(true);
    expect(await waits[1]).toBeUndefined();
    await expect.poll(() => blockedCalls(client)).toBe(0);
  });

  test("a worker that begins to wait right after the last one was closed gets its entry", async ({
    rig,
    client,
  }) => {
    const last = await rig.waiting("a");
    const waits = last.getNextJob("token");
    await expect.poll(() => blockedCalls(client)).toBe(1);
    await last.close(true);
    await waits;
    const next = (await rig.waiting("b")).getNextJob("token");
    await rig.queue("b").add("entry", { of: "b" });
    expect((await next)?.data).toEqual({ of: "b" });
  });

  test("a worker goes on waiting when Redis drops its connection", async ({ rig, client }) => {
    const waits = (await rig.waiting("a")).getNextJob("token");
    await expect.poll(() => blockedCalls(client)).toBe(1);
    const reader = /^id=(\d+) .*cmd=bzpopmin/m.exec(String(await client.client("LIST")));
    await client.call("CLIENT", "KILL", "ID", reader?.[1] ?? "none");
    await rig.queue("a").add("entry", { of: "a" });
    expect((await waits)?.data).toEqual({ of: "a" });
  });
});
