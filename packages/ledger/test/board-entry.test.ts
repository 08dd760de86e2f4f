import { type JobResult, type Outcome, queuePrefix, redisKeys, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue } from "bullmq";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { type JobEvent, JobEvents } from "../src/events/job-events.ts";
import { lastLines } from "../src/events/last-lines.ts";
import { Leases } from "../src/leases/leases.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { keptMs } from "../src/queues/exchange.ts";
import { JobSource } from "../src/queues/job-source.ts";
import {
  completedKey,
  entryKey,
  failedKey,
  finishedKept,
  jobQueueName,
  queueKeys,
} from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { Wakes } from "../src/queues/wakes.ts";
import { jobOf } from "./support.ts";

const key = sandboxKey.parse("acme");
const timing = { wallMs: 12, cpuMs: 3 };
const done: Outcome = { kind: "exited", code: 0 };

/** A sandbox's holder, and its queue as any dashboard for BullMQ sees it. */
class Holder {
  readonly redis: Redis;
  readonly events: JobEvents;
  readonly board: Queue;
  readonly #source: JobSource;
  readonly #wakes: Wakes;
  readonly #holding: { readonly epoch: number; readonly instance: string };

  constructor(redis: Redis, holding: { readonly epoch: number; readonly instance: string }) {
    const connection = bullConnection(redis);
    this.redis = redis;
    this.events = new JobEvents(redis);
    this.board = new Queue(jobQueueName, { connection, prefix: queuePrefix(key), skipMetasUpdate: true });
    this.#wakes = new Wakes(redis, holding.instance);
    this.#source = new JobSource(redis, key, holding, this.#wakes, this.events.exchanges);
    this.#holding = holding;
  }

  async take(id: string, attempt = 1) {
    await submitJob(this.redis, key, jobOf(id, { attempt }));
    const held = await this.#source.next(1_000);
    if (!held) throw new Error(`${id} is not in the queue`);
    return { held, to: { key, ...this.#holding, jobId: id } };
  }

  async end(id: string, outcome: Outcome, value: JobResult["value"] = {}): Promise<void> {
    const { to } = await this.take(id);
    const result = { outcome, value, timing };
    await this.events.publish({ ...to, ends: { attempt: 1, leaves: true } }, [{ type: "finished", result }]);
  }

  async close(): Promise<void> {
    await this.#source.close();
    this.#wakes.stop();
    await this.board.close();
  }
}

const test = withRedis.extend<{ holder: Holder }>({
  holder: async ({ redis }, use) => {
    const commands = redis.connect();
    const lease = await new Leases(commands).take(
      key,
      { worker: workerId.parse("w"), instance: "w" },
      60_000,
    );
    if (!lease.taken) throw new Error(lease.why);
    const holder = new Holder(commands, { epoch: lease.epoch, instance: "w" });
    await use(holder);
    await holder.close();
  },
});

const failures: readonly [reason: string, outcome: Outcome][] = [
  ["exited 3", { kind: "exited", code: 3 }],
  ["killed by SIGKILL", { kind: "signalled", signal: 9 }],
  ["timed out after 30 s", { kind: "timed-out", afterMs: 30_000 }],
  ["timed out after 0.5 s", { kind: "timed-out", afterMs: 500 }],
  ["out of memory: the limit is 512 MB", { kind: "out-of-memory", limitBytes: 512 * 1024 ** 2 }],
  ["stopped: more than 1 MB of output", { kind: "output-limit", limitBytes: 1024 ** 2 }],
  ["cancelled: by request", { kind: "cancelled", reason: "by request" }],
  ["refused: no such file", { kind: "refused", code: "not-found", message: "no such file" }],
  ["lost: its worker died", { kind: "lost", message: "its worker died" }],
  [
    "stopped: workspace quota exceeded (1 MB); used 2 MB",
    { kind: "quota-exceeded", limit: 1024 ** 2, used: 2 * 1024 ** 2, unit: "bytes" },
  ],
];

describe("on a dashboard for BullMQ", () => {
  test("a job that did not succeed is a failed job whose reason is how it ended, cancelled ones included", async ({
    holder,
  }) => {
    for (const [index, [, outcome]] of failures.entries()) await holder.end(`job-${index}`, outcome);
    for (const [index, [reason, outcome]] of failures.entries()) {
      const job = await holder.board.getJob(`job-${index}`);
      expect(await job?.getState(), reason).toBe("failed");
      expect(job).toMatchObject({ failedReason: reason, attemptsMade: 1 });
      expect(job?.returnvalue).toEqual({ outcome, timing });
      expect(job?.finishedOn).toBeGreaterThanOrEqual(job?.processedOn ?? Number.POSITIVE_INFINITY);
    }
    expect(await holder.board.getJobCounts("active", "completed", "failed")).toEqual({
      ...{ active: 0, completed: 0, failed: failures.length },
    });
  });

  test("a job that succeeded is completed, and returns its outcome and timing without its output", async ({
    holder,
  }) => {
    await holder.end("good", done, { stdout: "a secret" });
    const job = await holder.board.getJob("good");
    expect(await job?.getState()).toBe("completed");
    expect(job?.returnvalue).toEqual({ outcome: done, timing });
    expect(job?.failedReason).toBeUndefined();
    expect(JSON.stringify(await holder.redis.hgetall(entryKey(key, "good")))).not.toContain("a secret");
  });

  test("an attempt that another one follows is a failed job, and names the next attempt", async ({
    holder,
  }) => {
    const { to } = await holder.take("again");
    const outcome: Outcome = { kind: "exited", code: 7 };
    const ended = { attempt: 1, outcome, atMs: 1, dueAtMs: 5 };
    await holder.events.publish({ ...to, ends: { attempt: 1, leaves: true } }, [
      { type: "retrying", ...ended },
    ]);
    expect(await holder.board.getJob("again")).toMatchObject({
      failedReason: "exited 7; attempt 2 follows",
      returnvalue: { outcome, nextAttempt: { attempt: 2, dueAtMs: 5 } },
    });
    const second = await holder.take("again", 2);
    const last = { ...second.to, ends: { attempt: 2, leaves: true } };
    await holder.events.publish(last, [{ type: "finished", result: { outcome: done, value: {}, timing } }]);
    const job = await holder.board.getJob("again~2");
    expect(await job?.getState()).toBe("completed");
    expect(job?.attemptsMade).toBe(2);
  });

  test("a job whose end was published before it left its queue is listed as it ended", async ({ holder }) => {
    const { held, to } = await holder.take("letter");
    const result = { outcome: { kind: "lost", message: "gone" } as const, value: {}, timing };
    await holder.events.publish({ ...to, ends: { attempt: 1, leaves: false } }, [
      { type: "finished", result },
    ]);
    expect(await (await holder.board.getJob("letter"))?.getState()).toBe("active");
    await held.complete();
    expect(await (await holder.board.getJob("letter"))?.getState()).toBe("failed");
  });

  test("the end of an attempt also removes earlier attempts that a Redis restored after losing its last second", async ({
    holder,
  }) => {
    // Attempts 1 and 2 had ended, and nothing of that is known any more.
    for (const attempt of [1, 2]) await holder.take("again", attempt);
    const { to } = await holder.take("again", 3);
    const result = { outcome: done, value: {}, timing };
    await holder.events.publish({ ...to, ends: { attempt: 3, leaves: true } }, [
      { type: "finished", result },
    ]);
    expect(await holder.board.getJobCounts("active", "completed", "failed")).toEqual({
      active: 0,
      completed: 1,
      failed: 2,
    });
  });

  test("a job that was cancelled before it began is a failed job", async ({ holder }) => {
    await submitJob(holder.redis, key, jobOf("unwanted"));
    const outcome: Outcome = { kind: "cancelled", reason: "by request, before it began" };
    const waiting = { key, jobId: "unwanted", attempt: 1, inbox: undefined };
    const result = { outcome, value: {}, timing };
    const queue = queueKeys(key, "unwanted", 1);
    expect(await holder.events.cancel({ ...waiting, queue }, result)).toBe("ended");
    const job = await holder.board.getJob("unwanted");
    expect(await job?.getState()).toBe("failed");
    expect(job?.failedReason).toBe("cancelled: by request, before it began");
    expect(await holder.board.getJobCounts("wait", "failed")).toEqual({ wait: 0, failed: 1 });
  });

  test("the last hundred completed and failed entries are kept, and none for longer than its job's events", async ({
    holder,
  }) => {
    const { redis } = holder;
    for (let index = 0; index < finishedKept + 3; index++) {
      await holder.end(`good-${index}`, done);
      await holder.end(`bad-${index}`, { kind: "exited", code: 1 });
    }
    for (const [list, name] of [
      [completedKey(key), "good"],
      [failedKey(key), "bad"],
    ] as const) {
      expect(await redis.zcard(list)).toBe(finishedKept);
      expect(await redis.exists(entryKey(key, `${name}-2`))).toBe(0);
      expect(await redis.exists(entryKey(key, `${name}-3`))).toBe(1);
    }
    await redis.zadd(failedKey(key), Date.now() - keptMs - 1_000, "bad-50");
    await redis.zadd(completedKey(key), Date.now() - keptMs - 1_000, "good-50");
    // A submission removes expired entries once a minute.
    await redis.hset(redisKeys.lease(key), "used", Date.now() - 60_000);
    await holder.end("later", done);
    expect(await redis.exists(entryKey(key, "bad-50"), entryKey(key, "good-50"))).toBe(0);
    expect(await redis.zscore(failedKey(key), "bad-50")).toBeNull();
    expect(await redis.zcard(failedKey(key))).toBe(finishedKept - 1);
  });
});

describe("last lines of a job", () => {
  const printed = (text: string): JobEvent => ({ type: "stdout", bytes: Buffer.from(text) });
  const started = (attempt: number): JobEvent => ({
    type: "started",
    worker: "w",
    epoch: 1,
    atMs: 1,
    attempt,
  });
  const retrying = (attempt: number): JobEvent => {
    return { type: "retrying", attempt, outcome: { kind: "exited", code: 7 }, atMs: 1, dueAtMs: 2 };
  };
  const linesOf = (redis: Redis, attempt: number, isLast: boolean) =>
    lastLines(redis, { key, jobId: "chatty" }, { attempt, isLast });

  test("the last lines of a job are the end of its result, 2 KiB at most, from the beginning of a line on", async ({
    holder,
  }) => {
    const { to } = await holder.take("chatty");
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index} é`);
    const value = { stdout: `${lines.join("\n")}\n`, stderr: "", cutBytes: 0 };
    const result = { outcome: { kind: "exited", code: 3 } as const, value, timing };
    await holder.events.publish({ ...to, ends: { attempt: 1, leaves: true } }, [
      { type: "finished", result },
    ]);
    const shown = await linesOf(holder.redis, 1, true);
    expect(shown.slice(-3)).toEqual(["line 498 é", "line 499 é", "[exit 3]"]);
    expect(lines).toContain(shown[0]);
    expect(Buffer.byteLength(shown.join("\n"))).toBeLessThanOrEqual(2_048);
    expect(shown.length).toBeGreaterThan(100);
  });

  test("the last lines of a running job are what it has written so far, both streams in order of arrival", async ({
    holder,
  }) => {
    const { to } = await holder.take("chatty");
    await holder.events.publish(to, [started(1), printed("one\ntw"), printed("o\n")]);
    await holder.events.publish(to, [{ type: "stderr", bytes: Buffer.from("three") }]);
    expect(await linesOf(holder.redis, 1, true)).toEqual(["one", "two", "three"]);
    await holder.events.publish(to, [printed(`${"x".repeat(70_000)}\nlast\n`)]);
    expect(await linesOf(holder.redis, 1, true)).toEqual(["last"]);
  });

  test("the last lines can be read of an earlier attempt of a job", async ({ holder }) => {
    const { to } = await holder.take("chatty");
    await holder.events.publish(to, [started(1), printed("first\n"), retrying(1)]);
    await holder.events.publish(to, [started(2), printed("second\n")]);
    expect(await linesOf(holder.redis, 1, false)).toEqual(["first"]);
    expect(await linesOf(holder.redis, 2, true)).toEqual(["second"]);
    expect(await linesOf(holder.redis, 3, false)).toEqual([]);
  });

  test("an event type of a newer version hides neither a job's progress nor its last lines", async ({
    holder,
  }) => {
    const { to } = await holder.take("chatty");
    await holder.events.publish(to, [started(1), printed("one\n")]);
    await holder.redis.xadd(redisKeys.events(key, "chatty"), "*", "t", "invented-later", "d", "{}");
    expect(await holder.events.progress(key, "chatty")).toEqual({ state: "started" });
    expect(await linesOf(holder.redis, 1, true)).toEqual(["one"]);
  });
});
