import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { connectRedis } from "../../redis/src/index.ts";
import { checkLayout } from "../src/layout.ts";

const refused = { name: "Fault", code: "redis-layout", retry: false };
describe.each(["single", "cluster"] as const)("Redis of another version, %s", (topology) => {
  const test = withRedis.extend({ topology });

  test("a Redis that the version without tags has used is refused, and stays as it was", async ({
    redis,
  }) => {
    const old = redis.connect();
    await old.hset("berth:job:a", "key", "acme");
    await old.zadd("berth:workers", 1, "rack7-1");
    await expect(checkLayout(old)).rejects.toMatchObject(refused);
    await expect(checkLayout(old)).rejects.toThrow(/berth:workers/);
    expect(await old.exists(redisKeys.layout)).toBe(0);
  });

  test("an empty Redis is marked, and one with a mark is used although an old key appears later", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await checkLayout(commands);
    expect(await commands.get(redisKeys.layout)).toBe("2");
    await commands.zadd("berth:workers", 1, "rack7-1");
    await checkLayout(commands);
    await commands.set(redisKeys.layout, "3");
    await expect(checkLayout(commands)).rejects.toMatchObject(refused);
  });

  test("a connection that checks sends its commands in order once Redis has passed, and none before", async ({
    redis,
  }) => {
    const admin = redis.connect();
    await admin.zadd("berth:workers", 1, "rack7-1");
    const commands = connectRedis({ url: redis.url, role: "commands", check: checkLayout });
    try {
      const early = [commands.rpush("list", "a"), commands.pipeline().rpush("list", "b").exec()];
      await expect(early[0]).rejects.toMatchObject(refused);
      expect(await early[1]).toMatchObject([[refused]]);
      expect(await admin.exists("list")).toBe(0);
      await admin.del("berth:workers");
      const pushed = ["a", "b", "c"].map((word) => commands.rpush("list", word));
      const piped = commands.pipeline().rpush("list", "d").rpush("list", "e").exec();
      expect(await Promise.all(pushed)).toEqual([1, 2, 3]);
      expect(await piped).toEqual([
        [null, 4],
        [null, 5],
      ]);
      expect(await commands.lrange("list", 0, -1)).toEqual(["a", "b", "c", "d", "e"]);
    } finally {
      commands.disconnect();
    }
  });
});
