import { redisKeys } from "@berth/protocol";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { unfinishedJobs } from "../src/door/unfinished-jobs.ts";

test("a tenant with few jobs makes ps read at most the oldest ten thousand of the fleet", async ({
  redis,
}) => {
  const client = redis.connect();
  const filler = client.pipeline();
  for (let at = 0; at < 10_600; at++) filler.zadd(redisKeys.unfinished, at, `job-${at}`);
  for (const at of [9_999, 10_000])
    filler.hset(redisKeys.job(`job-${at}`), {
      key: "acme",
      tenant: "acme",
      session: "main",
      kind: "exec",
      at,
    });
  await filler.exec();
  await client.config("RESETSTAT");
  const found = await unfinishedJobs(client, async () => "not-started", { tenant: "acme", limit: 100 });
  expect(found.map(({ id }) => id)).toEqual(["job-9999"]);
  const stats = await client.info("commandstats");
  expect(/cmdstat_hgetall:calls=(\d+)/.exec(stats)?.[1]).toBe("10000");
});
