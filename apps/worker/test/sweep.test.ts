import { join } from "node:path";
import {
  ArtifactStore,
  DirectoryStore,
  Leases,
  Offers,
  submitJob,
  unfinishedKeys,
  type VanishedJob,
} from "@berth/ledger";
import { job, redisKeys, type SandboxKey, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { expect } from "vitest";
import { type TestRedis, test } from "../../../test/support/redis.ts";
import { systemClock } from "../src/clock.ts";
import { offerLapsed, type SweepOptions, sweep } from "../src/sweep.ts";

async function submitted(commands: Redis, tenant: string, id: string): Promise<SandboxKey> {
  const key = sandboxKey.parse(tenant);
  const request = { kind: "exec", command: "true" };
  await submitJob(commands, key, job.parse({ version: 1, id, tenant, request }));
  return key;
}

/** Added long ago, and now in no queue. */
async function makePhantom(commands: Redis, key: SandboxKey, id: string): Promise<void> {
  await commands.zadd(redisKeys.unfinished, 1, id);
  await commands.lrem(unfinishedKeys(key)[0] ?? "", 1, id);
}

/** Sweeps until it is stopped. */
function sweeping(redis: TestRedis, commands: Redis, more: Partial<SweepOptions> = {}) {
  const vanished: VanishedJob[] = [];
  const stop = new AbortController();
  const offers = new Offers(commands);
  const store = new DirectoryStore(join(redis.directory, "artifacts"));
  const swept = sweep(
    {
      redis: commands,
      leases: new Leases(commands),
      offers,
      artifacts: new ArtifactStore(commands, store, { quotaBytes: 1, keptMs: 1 }),
      clock: systemClock,
      targets: [],
      isResting: () => false,
      sweepMs: 5,
      pruneMs: 0,
      enqueue: async () => {},
      report: () => {},
      forgetMs: 3_600_000,
      onVanished: (found) => vanished.push(found),
      ...more,
    },
    stop.signal,
  );
  const end = async () => {
    stop.abort();
    await swept;
    await offers.close();
  };
  return { vanished, end };
}

test("a worker's sweep ends a job that no queue has, and leaves one that waits", async ({ redis }) => {
  const commands = redis.connect();
  const key = await submitted(commands, "acme", "phantom");
  await submitted(commands, "acme", "waits");
  await commands.zadd(redisKeys.unfinished, 1, "waits");
  await makePhantom(commands, key, "phantom");
  const { vanished, end } = sweeping(redis, commands);
  await expect.poll(() => vanished).toEqual([{ key, jobId: "phantom" }]);
  await end();
  expect(await commands.zrange(redisKeys.unfinished, "0", "-1")).toEqual(["waits"]);
});

test("a worker's sweep keeps house on a Redis that is full and refuses its offers", async ({ redis }) => {
  const commands = redis.connect();
  const key = await submitted(commands, "acme", "phantom");
  await makePhantom(commands, key, "phantom");
  const waiting = await submitted(commands, "waiting", "waits");
  await commands.config("SET", "maxmemory", "1mb");
  const leases = new Leases(commands);
  const targets = [await leases.offerTarget(waiting)];
  await expect(leases.unheld({ after: 0, limit: 10, olderThanMs: 0 })).resolves.toMatchObject({
    keys: [key, waiting],
  });
  const { vanished, end } = sweeping(redis, commands, { leases, targets });
  await expect.poll(() => vanished).toEqual([{ key, jobId: "phantom" }]);
  await end();
});

test("a sandbox whose worker died is offered when its lease has expired, without a sweep", async ({
  redis,
}) => {
  const commands = redis.connect();
  const key = sandboxKey.parse("acme");
  const leases = new Leases(commands);
  const offers = new Offers(commands);
  const request = { kind: "exec", command: "true" };
  await submitJob(commands, key, job.parse({ version: 1, id: "a", tenant: "acme", request }));
  await leases.take(key, { worker: workerId.parse("dead"), instance: "dead" }, 50);
  const stop = new AbortController();
  const looking = offerLapsed({ leases, offers, clock: systemClock }, stop.signal);
  const target = await leases.offerTarget(key);
  await expect.poll(() => offers.waiting([target])).toBe(1);
  stop.abort();
  await looking;
  await offers.close();
});
