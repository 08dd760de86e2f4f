import { Berth } from "@berth/client";
import { faultTable } from "@berth/protocol";
import { expect } from "vitest";
import { runCli } from "../support/cli.ts";
import { test } from "../support/fleet.ts";
import { TestGateway } from "../support/gateway.ts";
import type { TestRedis } from "../support/redis.ts";

/** Some of what the version without tags in its keys left. */
async function usedByOldVersion(redis: TestRedis) {
  const old = redis.connect();
  await old.hset("berth:job:a", "key", "acme", "added", 1);
  await old.zadd("berth:unfinished", 1, "a");
  await old.zadd("berth:workers", Date.now(), "rack7-1");
  await old.set("berth:api-keys-made", "1");
  const left = await old.keys("*");
  return async () => expect((await old.keys("*")).sort()).toEqual(left.sort());
}

const advice = faultTable["redis-layout"].operator;

test("the client, the command, a gateway and a worker refuse a Redis of the version without tags, and change nothing in it", async ({
  fleet,
}) => {
  const { redis } = fleet;
  const expectUnchanged = await usedByOldVersion(redis);
  const berth = new Berth({ redis: redis.url });
  const refused = { name: "Fault", code: "redis-layout" };
  await expect(berth.tenant("acme").exec("true").enqueued()).rejects.toMatchObject(refused);
  await expect(berth.jobs.find("a")).rejects.toMatchObject(refused);
  await berth.close();
  const cli = await runCli(["ps"], { env: { REDIS_URL: redis.url } });
  expect(cli.code).toBe(78);
  expect(cli.stderr).toContain("berth:workers");
  expect(cli.stderr).toContain(advice);
  const gateway = new TestGateway({ REDIS_URL: redis.url });
  expect(await gateway.ended()).toBe(78);
  expect(gateway.errors).toContain(advice);
  const worker = fleet.launch("w1");
  expect(await worker.ended()).toBe(78);
  expect(worker.log).toContain(advice);
  await expectUnchanged();
});
