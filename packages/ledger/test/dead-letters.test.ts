import { fleetQueuePrefix, type Job, type Outcome, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue, Worker } from "bullmq";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { DeadLetters, type NewDeadLetter } from "../src/dead-letters/dead-letters.ts";
import { DeadLetterWorker } from "../src/dead-letters/dead-letters-worker.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { MarkerWaits } from "../src/queues/marker-waits.ts";
import { jobOf } from "./support.ts";

const lost: Outcome = { kind: "lost", message: "its worker died" };
const letterOf = (id: string, more: Partial<NewDeadLetter> = {}): NewDeadLetter => ({
  jobId: id,
  sandboxKey: "acme",
  reason: "lost",
  outcome: lost,
  atMs: 1,
  worker: "worker-1",
  job: jobOf(id, { labels: { team: "blue" }, deadlineAtMs: 5, inbox: "some-client" }),
  ...more,
});

/** Dead letters, what was enqueued again, and the queue as a dashboard sees it. */
class DeadLetterRig {
  readonly letters: DeadLetters;
  readonly board: Queue;
  readonly worker: DeadLetterWorker;
  readonly enqueued: Job[] = [];
  readonly enqueue = async (job: Job) => this.enqueued.push(job);

  constructor(redis: Redis, kept?: { age: number; count: number }) {
    this.letters = new DeadLetters(redis, kept);
    this.board = new Queue("dead", { connection: bullConnection(redis), prefix: fleetQueuePrefix });
    this.worker = new DeadLetterWorker({
      redis,
      waits: new MarkerWaits(redis, "dead-letters"),
      enqueue: this.enqueue,
      lockMs: 1_000,
    });
  }

  readonly listed = async (count: number) => {
    await expect.poll(() => this.letters.count()).toBe(count);
  };

  async close(): Promise<void> {
    await this.worker.stop();
    await this.letters.close();
    await this.board.close();
  }
}

const test = withRedis.extend<{ rig: DeadLetterRig }>({
  rig: async ({ redis }, use) => {
    const rig = new DeadLetterRig(redis.connect("blocking"), { age: 1_000, count: 8 });
    await use(rig);
    await rig.close();
  },
});

describe("dead letter", () => {
  test("a dead letter is a failed job with its reason, request, outcome, time and worker", async ({
    rig,
  }) => {
    const { letters, board, worker, listed } = rig;
    worker.start();
    await letters.add(letterOf("job-a"));
    await listed(1);
    const [failed] = await board.getFailed();
    expect(failed?.failedReason).toBe("lost: lost: its worker died");
    expect(await letters.list()).toMatchObject([
      { jobId: "job-a", reason: "lost", outcome: lost, worker: "worker-1", atMs: 1, sandboxKey: "acme" },
    ]);
  });

  test("a dead letter of the same job replaces the one before", async ({ rig }) => {
    const { letters, worker, listed } = rig;
    worker.start();
    await letters.add(letterOf("job-a"));
    await listed(1);
    await letters.add(letterOf("job-a", { atMs: 2 }));
    await expect.poll(async () => (await letters.list()).map(({ atMs }) => atMs)).toEqual([2]);
  });

  test("dead letters are listed newest first, page by page, however many came in one millisecond", async ({
    rig,
    redis,
  }) => {
    const { letters, worker, listed } = rig;
    const client = redis.connect();
    worker.start();
    const ids = Array.from({ length: 7 }, (_, index) => `job-${index}`);
    for (const id of ids) await letters.add(letterOf(id));
    await listed(7);
    for (const [index, id] of ids.entries())
      await client.zadd(`${fleetQueuePrefix}:dead:failed`, index < 5 ? 5 : 9, `d-${id}`);
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await letters.list({ limit: 2, ...(after === undefined ? {} : { after }) });
      if (page.length === 0) break;
      seen.push(...page.map(({ jobId }) => jobId));
      after = page.at(-1)?.cursor;
    }
    expect(seen).toEqual(["job-6", "job-5", "job-4", "job-3", "job-2", "job-1", "job-0"]);
  });

  test("a dead letter is removed when there are too many newer ones, or when it is old", async ({
    rig,
    redis,
  }) => {
    const { letters, worker } = rig;
    const client = redis.connect();
    worker.start();
    for (let index = 0; index < 10; index++) await letters.add(letterOf(`job-${index}`));
    const ids = async () => (await letters.list()).map(({ jobId }) => jobId);
    const newest = Array.from({ length: 8 }, (_, index) => `job-${9 - index}`);
    await expect.poll(ids).toEqual(newest);
    await client.zadd(`${fleetQueuePrefix}:dead:failed`, Date.now() - 2_000_000, "d-job-4");
    await letters.add(letterOf("job-4-again"));
    await expect.poll(ids).toEqual(["job-4-again", ...newest.filter((id) => id !== "job-4")]);
  });

  test("a dead letter does not keep a request too large for a queue", async ({ rig }) => {
    const { letters, worker, listed, enqueue } = rig;
    worker.start();
    const request = { kind: "write", path: "a", content: "x".repeat(300_000) };
    await letters.add(letterOf("job-a", { job: jobOf("job-a", { request }) }));
    await listed(1);
    await expect(letters.redrive("job-a", enqueue)).rejects.toThrow(/cannot be read: request/);
  });
});

describe("re-drive", () => {
  test("a re-drive enqueues the job again under a new id that names the first, and the letter is gone", async ({
    rig,
    redis,
  }) => {
    const { letters, enqueued, enqueue, worker, listed } = rig;
    const client = redis.connect();
    worker.start();
    await letters.add(letterOf("job-a", { job: jobOf("job-a", { attempt: 3, retry: { attempts: 3 } }) }));
    await listed(1);
    expect(await letters.redrive("job-a", enqueue)).toBe("job-a-redrive-1");
    expect(enqueued).toMatchObject([
      { id: "job-a-redrive-1", attempt: 1, labels: { "berth.redrive-of": "job-a" }, tenant: "acme" },
    ]);
    expect(await letters.count()).toBe(0);
    // The second one dies as well.
    await client.set(redisKeys.sandboxOf("job-a-redrive-1"), "acme");
    await letters.add(letterOf("job-a-redrive-1", { job: enqueued[0] }));
    await listed(1);
    expect(await letters.redrive("job-a-redrive-1", enqueue)).toBe("job-a-redrive-2");
    expect(enqueued[1]?.labels["berth.redrive-of"]).toBe("job-a");
  });

  test("a re-drive drops the deadline and the inbox of the first, since no client waits there any more", async ({
    rig,
  }) => {
    const { letters, enqueued, enqueue, worker, listed } = rig;
    worker.start();
    await letters.add(letterOf("job-a"));
    await listed(1);
    await letters.redrive("job-a", enqueue);
    expect(enqueued[0]).toMatchObject({ labels: { team: "blue" } });
    expect(enqueued[0]).not.toHaveProperty("deadlineAtMs");
    expect(enqueued[0]).not.toHaveProperty("inbox");
  });

  test("a re-drive after one that died while enqueueing uses the same new id", async ({ rig, redis }) => {
    const { letters, enqueued, enqueue, worker, listed } = rig;
    const client = redis.connect();
    worker.start();
    await letters.add(letterOf("job-a"));
    await listed(1);
    const dying = async (job: Job) => {
      await enqueue(job);
      await client.set(redisKeys.sandboxOf(job.id), "acme");
      throw new Error("killed");
    };
    await expect(letters.redrive("job-a", dying)).rejects.toThrow("killed");
    expect(await letters.redrive("job-a", enqueue)).toBe("job-a-redrive-1");
    expect(new Set(enqueued.map(({ id }) => id))).toEqual(new Set(["job-a-redrive-1"]));
  });

  test.for([{}, { resetAttemptsMade: true, resetAttemptsStarted: true }])(
    "a re-drive is what a dashboard's retry button does, with %o",
    async (options, { rig }) => {
      const { letters, board, enqueued, worker, listed } = rig;
      worker.start();
      await letters.add(letterOf("job-a"));
      await listed(1);
      const [failed] = await board.getFailed();
      await failed?.retry("failed", options);
      await expect.poll(() => enqueued.map(({ id }) => id)).toEqual(["job-a-redrive-1"]);
      await expect.poll(() => board.getJob("d-job-a")).toBeUndefined();
    },
  );

  test("a re-drive of an unreadable job is refused, from a dashboard too", async ({ rig }) => {
    const { letters, board, enqueued, enqueue, worker, listed } = rig;
    worker.start();
    await letters.add(letterOf("job-a", { reason: "unreadable", job: { version: 9 } }));
    await listed(1);
    await expect(letters.redrive("job-a", enqueue)).rejects.toMatchObject({
      context: { reason: "unreadable" },
      message: expect.stringContaining("cannot be read"),
    });
    await (await board.getJob("d-job-a"))?.retry();
    await expect.poll(async () => (await board.getJob("d-job-a"))?.failedReason).toMatch(/cannot be read/);
    await listed(1);
    expect(enqueued).toEqual([]);
  });

  test("a letter whose addition was interrupted is listed, and is not run by accident", async ({
    rig,
    redis,
  }) => {
    const client = redis.connect("blocking");
    const { letters, enqueued, worker, listed } = rig;
    await letters.add(letterOf("job-a"));
    // A taker that dies.
    const options = {
      connection: bullConnection(client),
      prefix: fleetQueuePrefix,
      autorun: false,
      lockDuration: 300,
    };
    const taker = new Worker("dead", undefined, options);
    expect((await taker.getNextJob("a-taker-that-dies"))?.id).toBe("d-job-a");
    await taker.close(true);
    worker.start();
    await listed(1);
    expect(enqueued).toEqual([]);
  });

  test("a re-drive of an unknown letter is refused with that reason", async ({ rig }) => {
    const { letters, enqueue } = rig;
    await expect(letters.redrive("job-a", enqueue)).rejects.toMatchObject({
      context: { reason: "not-found" },
      message: "there is no dead letter of the job job-a",
    });
    expect(await letters.remove("job-a")).toBe(false);
  });
});
