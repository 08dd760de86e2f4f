import { Enqueuer } from "@berth/ledger";
import { job, redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { NullWorker } from "../bench/null-worker.ts";
import { RedisCost } from "../bench/redis-cost.ts";
import { busybox, test as withFleet } from "../support/fleet.ts";
import { test } from "../support/redis.ts";

/** Few enough that one of them meets no renewal, many enough that the printed figures are typical. */
const jobs = 30;

type Cost = Pick<RedisCost, "scripts" | "calls" | "scriptUs">;

async function costsOfJobs(redis: Redis): Promise<Cost[]> {
  const enqueuer = new Enqueuer(redis);
  using worker = new NullWorker(redis);
  const { tenancy, running } = await worker.hold("acme");
  const costs: Cost[] = [];
  for (let index = 0; index <= jobs; index++) {
    const id = `job-${index}`;
    await expect.poll(() => tenancy.idleSinceMs, { interval: 1 }).toBeDefined();
    const before = await RedisCost.read(redis);
    await enqueuer.enqueue(
      job.parse({ version: 1, id, tenant: "acme", request: { kind: "stat", path: "" } }),
    );
    const record = redisKeys.job(sandboxKey.parse("acme"), id);
    let looks = 0;
    for (; (await redis.hexists(record, "outcome")) === 0; looks++);
    const cost = (await RedisCost.read(redis)).since(before);
    // The first loads the scripts.
    if (index > 0) costs.push({ ...cost, calls: cost.calls - looks - 2 });
  }
  tenancy.yield();
  await running;
  await enqueuer.close();
  return costs;
}

/** Scripts for each of so many jobs that wait in one session, by which their holder carries them out. */
async function scriptsOfWaiting(redis: Redis, count: number): Promise<number> {
  const enqueuer = new Enqueuer(redis);
  using worker = new NullWorker(redis);
  for (let index = 0; index < count; index++)
    await enqueuer.enqueue(
      job.parse({ version: 1, id: `w-${index}`, tenant: "acme", request: { kind: "stat", path: "" } }),
    );
  const before = await RedisCost.read(redis);
  const ended = Promise.withResolvers<void>();
  let left = count;
  const onFinished = () => (--left === 0 ? ended.resolve() : undefined);
  const { tenancy, running } = await worker.hold("acme", { onFinished });
  await ended.promise;
  const { scripts } = (await RedisCost.read(redis)).since(before);
  tenancy.yield();
  await running;
  await enqueuer.close();
  return scripts / count;
}

function least(values: readonly number[]): number {
  return Math.min(...values);
}

describe("job alone, in an open sandbox", () => {
  test("a job alone in an open sandbox costs Redis three scripts: submit, take and begin, end", async ({
    redis,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "it counts the calls of one server");
    const costs = await costsOfJobs(redis.connect());
    const [scripts, calls, scriptUs] = (["scripts", "calls", "scriptUs"] as const).map((what) =>
      least(costs.map((cost) => cost[what])),
    );
    console.log(`a warm job costs Redis ${scripts} scripts, ${calls} calls and ${scriptUs} µs in scripts`);
    expect(scripts).toBe(3);
  });

  test("a job behind another of its session costs one script: it begins in the step that ends that one", async ({
    redis,
    topology,
    skip,
  }) => {
    skip(topology === "cluster", "there what a step leaves for other slots costs scripts of its own");
    // The rest: taking the lease and the jobs, and renewals.
    expect(await scriptsOfWaiting(redis.connect(), 100)).toBeLessThan(1.2);
  });

  withFleet("a job alone in a real open sandbox begins in the step that takes it, too", async ({ fleet }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    const redis = fleet.redis.connect();
    const takeOf = async () => {
      const enqueued = await acme.exec("true").enqueued();
      await enqueued.result;
      return await redis.hget(redisKeys.job(enqueued.key, enqueued.id), "part");
    };
    await expect.poll(takeOf, { timeout: 20_000 }).toMatch(/^take-/);
  });
});
