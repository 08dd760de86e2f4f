import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { checkRedis, topologyOf } from "../src/index.ts";

const onCluster = withRedis.extend({ topology: "cluster" });
const withSentinel = withRedis.extend({ topology: "sentinel" });
const withinMs = 20_000;

describe("a connection to a cluster", () => {
  onCluster("reaches the keys of every node, and goes on when a primary died", async ({ redis }) => {
    const client = redis.connect();
    expect(topologyOf(client)).toBe("cluster");
    expect((await checkRedis(client, redis.url)).version).toMatch(/^\d/);
    const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => client.set(key, key)));
    const blocking = redis.connect("blocking");
    const popped = blocking.bzpopmin("key-30", 60);
    await redis.killPrimary("key-0");
    const beganMs = performance.now();
    expect(await Promise.all(keys.map((key) => client.get(key)))).toEqual(keys);
    await client.zadd("key-30", 1, "member");
    expect(await popped).toEqual(["key-30", "member", "1"]);
    expect(performance.now() - beganMs).toBeLessThan(withinMs);
  });
});

describe("a connection through Sentinels", () => {
  withSentinel("goes on with the replica when the primary died", async ({ redis }) => {
    const client = redis.connect();
    const blocking = redis.connect("blocking");
    await client.set("key", "value");
    const popped = blocking.bzpopmin("queue", 60);
    await redis.killPrimary("key");
    const beganMs = performance.now();
    expect(await client.get("key")).toBe("value");
    await client.zadd("queue", 1, "member");
    expect(await popped).toEqual(["queue", "member", "1"]);
    expect(performance.now() - beganMs).toBeLessThan(withinMs);
  });
});
