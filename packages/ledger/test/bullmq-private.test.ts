import { readFileSync } from "node:fs";
import { chosenJobId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import {
  type BackendFactory,
  createRedisBackend,
  type Job,
  Queue,
  type RedisQueueBackend,
  UnrecoverableError,
  Worker,
} from "bullmq";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import type { bullmqPrivate } from "../src/queues/bullmq-private.ts";
import { bullConnection } from "../src/queues/connection.ts";

const at = { prefix: "p", name: "q" } as const;

/** Closes what it opened. */
class Bull implements AsyncDisposable {
  readonly redis: Redis;
  readonly queue: Queue;
  readonly #workers: Worker[] = [];

  constructor(redis: Redis, options: object = {}) {
    this.redis = redis;
    this.queue = new Queue(at.name, { connection: bullConnection(redis), prefix: at.prefix, ...options });
  }

  worker(process?: (job: Job) => Promise<unknown>): Worker {
    const connection = bullConnection(this.redis);
    const worker = new Worker(at.name, process, {
      connection,
      prefix: at.prefix,
      autorun: process !== undefined,
    });
    worker.on("error", () => {});
    this.#workers.push(worker);
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close(true)));
    await this.queue.close();
  }
}

/** An entry that has failed for good. */
async function failed(bull: Bull, id: string): Promise<Job> {
  const entry = await bull.queue.add("letter", {}, { jobId: id });
  bull.worker(async () => {
    throw new UnrecoverableError("buried");
  });
  await expect.poll(() => entry.isFailed()).toBe(true);
  return (await bull.queue.getJob(id)) ?? expect.unreachable();
}

const contracts: Record<keyof typeof bullmqPrivate, (redis: Redis) => Promise<void>> = {
  keyNames: async (redis) => {
    await using bull = new Bull(redis);
    const names = Object.keys(bull.queue.keys).filter((name) => name !== "");
    const taken = names.filter((name) => chosenJobId.safeParse(name).success);
    const forget = readFileSync(new URL("../lua/forget.lua", import.meta.url), "utf8");
    // No job runs on them there: a sandbox queue has no flows, and its metrics are off.
    const neverThere = ["de", "metrics", "priority", "wait"];
    const kept = names.filter((name) => !forget.includes(`'${name}'`) && !neverThere.includes(name));
    expect({ taken, kept }).toEqual({ taken: [], kept: [] });
  },
  entryKey: async (redis) => {
    await using bull = new Bull(redis);
    await bull.queue.add("exec", { some: 1 }, { jobId: "a~2", delay: 60_000 });
    expect(await redis.hget("p:q:a~2", "data")).toBe(JSON.stringify({ some: 1 }));
    await bull.queue.remove("a~2");
    expect(await redis.exists("p:q:a~2")).toBe(0);
  },
  foreignField: async (redis) => {
    await using bull = new Bull(redis);
    await bull.queue.add("exec", {}, { jobId: "a" });
    await redis.hset("p:q:a", "confirmed", "1");
    const ran: (string | undefined)[] = [];
    bull.worker(async ({ id }) => ran.push(id));
    await expect.poll(() => ran).toEqual(["a"]);
    expect((await bull.queue.getJob("a"))?.data).toEqual({});
  },
  logsAndLock: async (redis) => {
    await using bull = new Bull(redis);
    await bull.queue.add("exec", {}, { jobId: "a" });
    const entry = await bull.worker().getNextJob("token");
    await entry?.log("a line");
    expect([await redis.lrange("p:q:a:logs", 0, -1), await redis.get("p:q:a:lock")]).toEqual([
      ["a line"],
      "token",
    ]);
  },
  waitList: async (redis) => {
    await using bull = new Bull(redis);
    for (const id of ["first", "second"]) await bull.queue.add("offer", {}, { jobId: id });
    expect(await redis.lrange("p:q:wait", 0, -1)).toEqual(["second", "first"]);
    expect((await bull.worker().getNextJob("token"))?.id).toBe("first");
  },
  takeByHand: async (redis) => {
    await using bull = new Bull(redis);
    await bull.queue.add("offer", {}, { jobId: "a", removeOnComplete: true });
    const worker = bull.worker();
    const taken = await worker.getNextJob("token");
    expect(await bull.queue.getWaitingCount()).toBe(0);
    await taken?.moveToWait("token");
    expect(await bull.queue.getWaitingCount()).toBe(1);
    const again = await worker.getNextJob("token");
    await again?.moveToCompleted("taken", "token", false);
    expect(await redis.exists("p:q:active")).toBe(0);
    expect(await bull.queue.getJob("a")).toBeUndefined();
  },
  waitForJob: async (redis) => {
    await using bull = new Bull(redis);
    const found = Promise.withResolvers<{ member: string; score: number } | null>();
    let marker = "";
    const backend: BackendFactory<RedisQueueBackend> = (name, options, connections) => {
      const made = createRedisBackend(name, options, { ...connections, withBlockingConnection: false });
      marker = made.toKey("marker");
      made.waitForJob = () => found.promise;
      return made;
    };
    const worker = new Worker(
      at.name,
      undefined,
      { connection: bullConnection(redis), prefix: at.prefix, autorun: false },
      backend,
    );
    expect(await worker.getNextJob("token")).toBeUndefined();
    expect(marker).toBe("p:q:marker");
    await bull.queue.add("offer", {}, { jobId: "a" });
    expect(await redis.zrange(marker, "0", "-1", "WITHSCORES")).toEqual(["0", "0"]);
    const waits = worker.getNextJob("token");
    const closing = worker.close(true);
    found.reject(new Error("Connection is closed."));
    expect(await waits).toBeUndefined();
    await closing;
    expect(await bull.queue.getWaitingCount()).toBe(1);
  },
  readOnlyQueue: async (redis) => {
    await using bull = new Bull(redis, { skipMetasUpdate: true });
    expect(await bull.queue.getJobCounts()).toMatchObject({ active: 0, failed: 0 });
    expect(await redis.keys("p:*")).toEqual([]);
  },
  priorityScore: async (redis) => {
    await using bull = new Bull(redis);
    for (const id of ["a", "b"]) await bull.queue.add("exec", {}, { jobId: id, priority: 3 });
    const scores = await redis.zrange("p:q:prioritized", "0", "-1", "WITHSCORES");
    expect(scores).toEqual(["a", String(3 * 2 ** 32 + 1), "b", String(3 * 2 ** 32 + 2)]);
    expect(await redis.get("p:q:pc")).toBe("2");
  },
  failedScore: async (redis) => {
    await using bull = new Bull(redis);
    const entry = await failed(bull, "a");
    expect(Number(await redis.zscore("p:q:failed", "a"))).toBe(entry.finishedOn);
  },
  failureTrace: async (redis) => {
    await using bull = new Bull(redis);
    const entry = await failed(bull, "a");
    expect(entry.attemptsMade).toBe(1);
    expect(entry.stacktrace?.length).toBeGreaterThan(0);
    await entry.retry();
    const again = await bull.queue.getJob("a");
    expect((again?.attemptsMade ?? 0) > 0 || (again?.stacktrace?.length ?? 0) > 0).toBe(true);
  },
};

test.for(Object.entries(contracts))(
  "BullMQ keeps what we use beyond its documentation: %s",
  ([, holds], { redis }) => holds(redis.connect()),
);
