import { appendFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unfinishedKeys } from "@berth/ledger";
import { redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { type HistoryContainer, type HistoryJob, readHistory } from "./history.ts";
import { breachesOf } from "./history-rules.ts";
import { test as withRedis } from "./redis.ts";

const key = sandboxKey.parse("acme");
const done = JSON.stringify({ outcome: { kind: "exited", code: 0 } });

/** A run that never was: what a fleet would have left, written by hand. */
class Forged {
  readonly redis: Redis;
  readonly workspaces: string;
  readonly jobs: HistoryJob[] = [];
  readonly containers: HistoryContainer[] = [];
  #ms = 1_000;

  constructor(redis: Redis, workspaces: string) {
    this.redis = redis;
    this.workspaces = workspaces;
  }

  job(id: string, more: Partial<HistoryJob> = {}): HistoryJob {
    const job = { id, key, session: "main", repeatable: false, mark: id, ...more };
    this.jobs.push(job);
    return job;
  }

  async started({ id }: HistoryJob, epoch = 1, worker = "worker-1"): Promise<void> {
    await this.event(id, "started", JSON.stringify({ worker, epoch, atMs: 0 }));
  }

  async event(id: string, type: string, data: string): Promise<void> {
    await this.redis.xadd(redisKeys.events(key, id), `${this.#ms++}-0`, "t", type, "d", data);
  }

  async finished({ id }: HistoryJob, data = done): Promise<void> {
    await this.event(id, "finished", data);
    await this.redis.xadd(redisKeys.results, `${this.#ms++}-0`, "job", id, "key", key, "d", data);
  }

  async ledger(...lines: string[]): Promise<void> {
    await mkdir(join(this.workspaces, key), { recursive: true });
    await appendFile(join(this.workspaces, key, "ledger"), lines.map((line) => `${line}\n`).join(""));
  }

  async lease(worker: string, epoch: number, of: SandboxKey = key): Promise<void> {
    const deadline = worker === "" ? 0 : Date.now() + 60_000;
    await this.redis.hset(redisKeys.lease(of), { worker, epoch, deadline });
  }

  /** From its beginning to its end, as it should be. */
  async ran(job: HistoryJob, epoch = 1): Promise<void> {
    await this.started(job, epoch);
    await this.ledger(`+${job.mark}`, `-${job.mark}`);
    await this.finished(job);
  }

  async breaches(): Promise<string[]> {
    return breachesOf(await readHistory(this));
  }
}

const test = withRedis.extend<{ forged: Forged }>({
  forged: async ({ redis }, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-history-"));
    const forged = new Forged(redis.connect(), directory);
    await forged.lease("worker-1", 1);
    await use(forged);
    await rm(directory, { recursive: true, force: true });
  },
});

describe("history checker", () => {
  test("the history checker finds nothing wrong with a run as it should be", async ({ forged }) => {
    await forged.ran(forged.job("a"));
    await forged.lease("worker-1", 2);
    await forged.ran(forged.job("b"), 2);
    const repeated = forged.job("c", { repeatable: true });
    await forged.started(repeated, 2);
    await forged.ledger("+c");
    await forged.lease("worker-1", 3);
    await forged.ran(repeated, 3);
    forged.containers.push({ id: "1", key, worker: "worker-1", epoch: 2 });
    expect(await forged.breaches()).toEqual([]);
  });

  test("the history checker sees a job without an end", async ({ forged }) => {
    await forged.started(forged.job("a"));
    expect(await forged.breaches()).toEqual(["a has 0 terminal records", "a is 0 times in the results"]);
  });

  test("the history checker sees two ends", async ({ forged }) => {
    const job = forged.job("a");
    await forged.ran(job);
    await forged.finished(job);
    expect(await forged.breaches()).toEqual(["a has 2 terminal records", "a is 2 times in the results"]);
  });

  test("the history checker sees an end that differs from the one in the results", async ({ forged }) => {
    const job = forged.job("a");
    await forged.started(job);
    await forged.event("a", "finished", JSON.stringify({ outcome: { kind: "lost" } }));
    await forged.redis.xadd(redisKeys.results, "*", "job", "a", "d", done);
    expect(await forged.breaches()).toEqual(["a ended otherwise in the results than in its stream"]);
  });

  test("the history checker sees what follows a terminal record", async ({ forged }) => {
    await forged.ran(forged.job("a"));
    await forged.event("a", "stdout", "late");
    expect(await forged.breaches()).toEqual(["a: stdout follows its terminal record"]);
  });

  test("the history checker sees a finished job that never left its queue", async ({ forged }) => {
    await forged.ran(forged.job("a"));
    await forged.redis.lpush(unfinishedKeys(key)[1] ?? "", "a");
    expect(await forged.breaches()).toEqual(["a is still in its queue"]);
  });

  test("the history checker sees an epoch that went back", async ({ forged }) => {
    await forged.lease("worker-1", 2);
    await forged.ran(forged.job("a", { mark: undefined }), 2);
    await forged.ran(forged.job("b", { mark: undefined, session: "other" }), 1);
    expect(await forged.breaches()).toEqual(["b began in epoch 1 of acme, after epoch 2"]);
  });

  test("the history checker sees two workers in one epoch, and an epoch the lease never gave", async ({
    forged,
  }) => {
    const [one, two] = [forged.job("a"), forged.job("b", { session: "other" })];
    await forged.started(one, 2, "worker-1");
    await forged.started(two, 2, "worker-2");
    await forged.ledger("+a", "+b", "-a", "-b");
    await forged.finished(one);
    await forged.finished(two);
    expect(await forged.breaches()).toEqual([
      "epoch 2 of acme had two workers, worker-1 and worker-2",
      "the lease of acme has epoch 1, but epoch 2 has run jobs",
    ]);
  });

  test("the history checker sees a session's jobs out of order, by the streams and by the ledger", async ({
    forged,
  }) => {
    const [one, two] = [forged.job("a"), forged.job("b")];
    await forged.ran(two);
    await forged.ran(one);
    expect(await forged.breaches()).toEqual(["b began before a had ended", "b ran before a had ended"]);
  });

  test("the history checker sees two jobs of a session at once", async ({ forged }) => {
    const [one, two] = [forged.job("a"), forged.job("b")];
    await forged.started(one);
    await forged.started(two);
    await forged.ledger("+a", "+b", "-b", "-a");
    await forged.finished(one);
    await forged.finished(two);
    expect(await forged.breaches()).toEqual(["b began before a had ended", "b ran before a had ended"]);
  });

  test("the history checker lets sessions overlap, and jobs that are promised no order", async ({
    forged,
  }) => {
    const jobs = [
      forged.job("a"),
      forged.job("b", { session: "other" }),
      forged.job("c", { unordered: true }),
    ];
    for (const job of jobs) await forged.started(job);
    await forged.ledger("+c", "+b", "+a", "-a", "-b", "-c");
    for (const job of jobs) await forged.finished(job);
    expect(await forged.breaches()).toEqual([]);
  });

  test("the history checker sees a job that ran twice, though the streams have one run", async ({
    forged,
  }) => {
    await forged.ran(forged.job("a"));
    await forged.ledger("+a");
    expect(await forged.breaches()).toEqual(["a must not be repeated, and ran 2 times"]);
  });

  test("the history checker sees a job that began twice, though it was killed before it wrote", async ({
    forged,
  }) => {
    const job = forged.job("a");
    await forged.started(job);
    await forged.ran(job);
    expect(await forged.breaches()).toEqual(["a must not be repeated, and began 2 times"]);
  });

  test("the history checker sees output that was published twice, or not at all", async ({ forged }) => {
    const said = JSON.stringify({ outcome: { kind: "exited", code: 0 }, value: { stdout: "hi\n" } });
    for (const [id, times] of [
      ["once", 1],
      ["twice", 2],
      ["never", 0],
    ] as const) {
      const job = forged.job(id, { mark: undefined });
      await forged.started(job);
      for (let time = 0; time < times; time++) await forged.event(id, "stdout", "hi\n");
      await forged.finished(job, said);
    }
    expect(await forged.breaches()).toEqual([
      'twice said "hi\\nhi\\n" live, "hi\\n" at its end',
      'never said "" live, "hi\\n" at its end',
    ]);
  });

  test("the history checker sees a job that ran without a record, one that was refused and ran, and one that never ran", async ({
    forged,
  }) => {
    const [silent, refused, idle] = ["silent", "refused", "idle"].map((id) =>
      forged.job(id, { session: id }),
    );
    if (!silent || !refused || !idle) throw new Error("three jobs");
    await forged.ledger("+silent", "-silent", "+refused");
    await forged.finished(silent);
    await forged.started(refused);
    await forged.finished(refused, JSON.stringify({ outcome: { kind: "refused", code: "x", message: "" } }));
    await forged.started(idle);
    await forged.finished(idle);
    expect(await forged.breaches()).toEqual([
      "silent ran, and nothing says that it began",
      "refused was refused, and ran",
      "idle succeeded, and its command never came to its end",
    ]);
  });

  test("the history checker sees a process that outlived its epoch", async ({ forged }) => {
    const [old, young] = [forged.job("a", { session: "one" }), forged.job("b", { session: "two" })];
    await forged.lease("worker-1", 2);
    await forged.started(old, 1);
    await forged.ledger("+a");
    await forged.finished(old, JSON.stringify({ outcome: { kind: "lost", message: "" } }));
    await forged.ran(young, 2);
    await forged.ledger("-a");
    expect(await forged.breaches()).toEqual(["a of acme wrote in epoch 1, after b of epoch 2"]);
  });

  test("the history checker sees containers without a lease, of another worker, and ahead of the lease", async ({
    forged,
  }) => {
    const globex = sandboxKey.parse("globex");
    await forged.lease("", 4, globex);
    forged.containers.push(
      { id: "one", key: globex, worker: "worker-1", epoch: 4 },
      { id: "two", key, worker: "worker-2", epoch: 1 },
      { id: "three", key, worker: "worker-1", epoch: 2 },
    );
    expect(await forged.breaches()).toEqual([
      "container one of globex has no lease",
      "container two of acme is worker-2's, but the lease is worker-1's",
      "container three of acme is of epoch 2, ahead of the lease's 1",
    ]);
  });
});
