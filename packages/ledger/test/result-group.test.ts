import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type GroupResult, ResultGroup, type ResultGroupOptions } from "../src/events/result-group.ts";
import { test as base, type Reading, resultOf } from "./reading.ts";

/** Consumers of one group, each with connections of its own as separate processes would have. */
class Groups {
  readonly reading: Reading;
  readonly #open: ResultGroup[] = [];

  constructor(reading: Reading) {
    this.reading = reading;
  }

  join(options: ResultGroupOptions): ResultGroup {
    const { redis } = this.reading;
    const group = new ResultGroup(redis.connect(), redis.connect("blocking"), "billing", options);
    this.#open.push(group);
    return group;
  }

  /** As a worker's script does when jobs end. */
  async finish(from: number, to: number): Promise<void> {
    const ends = [];
    for (let index = from; index < to; index++) {
      const data = JSON.stringify(resultOf(`${index}`));
      ends.push(
        this.reading.commands.xadd(
          redisKeys.results,
          "*",
          "job",
          `job-${index}`,
          "key",
          "acme.s.one",
          "d",
          data,
        ),
      );
    }
    await Promise.all(ends);
  }

  async pending(): Promise<number> {
    const [count] = (await this.reading.commands.xpending(redisKeys.results, "billing")) as [number];
    return count;
  }

  async close(): Promise<void> {
    for (const group of this.#open) await group.close();
  }
}

const test = base.extend<{ groups: Groups }>({
  groups: async ({ reading }, use) => {
    const groups = new Groups(reading);
    try {
      await use(groups);
    } finally {
      await groups.close();
    }
  },
});

async function take(group: AsyncIterable<GroupResult>, count: number): Promise<GroupResult[]> {
  const taken: GroupResult[] = [];
  for await (const one of group) {
    taken.push(one);
    if (taken.length === count) break;
  }
  return taken;
}

const idsOf = (results: readonly GroupResult[]) => results.map(({ jobId }) => jobId);
const jobs = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `job-${from + index}`);

describe("group that reads results", () => {
  test("a group that reads results gives each result once among two consumers that acknowledge", async ({
    groups,
  }) => {
    const seen: string[] = [];
    const readers = ["a", "b"].map((consumer) => groups.join({ consumer, batch: 10 }));
    const reading = readers.map(async (group) => {
      for await (const { jobId, ack } of group) {
        seen.push(jobId);
        await ack();
      }
    });
    await groups.finish(0, 500);
    await expect.poll(() => seen.length).toBe(500);
    await expect.poll(() => groups.pending()).toBe(0);
    await groups.close();
    await Promise.all(reading);
    expect([...seen].sort()).toEqual(jobs(0, 500).sort());
  });

  test("a group that reads results gets the job's tenant, session and outcome", async ({ groups }) => {
    await groups.finish(7, 8);
    const [one] = await take(groups.join({ consumer: "a" }), 1);
    expect(one).toMatchObject({ jobId: "job-7", key: "acme.s.one", tenant: "acme", result: resultOf("7") });
  });

  test("a group that reads results begins with the oldest result that is kept, or with the next one", async ({
    groups,
  }) => {
    await groups.finish(0, 3);
    expect(idsOf(await take(groups.join({ consumer: "a" }), 3))).toEqual(jobs(0, 3));
    const { redis } = groups.reading;
    const late = new ResultGroup(redis.connect(), redis.connect("blocking"), "late", {
      consumer: "a",
      from: "now",
    });
    const next = take(late, 1);
    await expect.poll(() => groups.reading.blocked()).toHaveLength(1);
    await groups.finish(3, 4);
    expect(idsOf(await next)).toEqual(["job-3"]);
    await late.close();
  });

  test("a group that reads results gives a consumer that comes back what it had not acknowledged, first", async ({
    groups,
  }) => {
    await groups.finish(0, 10);
    const crashed = groups.join({ consumer: "a", batch: 4 });
    const taken = await take(crashed, 3);
    await taken[0]?.ack();
    await crashed.close();
    const back = await take(groups.join({ consumer: "a", batch: 4 }), 9);
    expect(idsOf(back)).toEqual(jobs(1, 10));
  });

  test("a group that reads results gives another what a dead consumer left, after the idle time", async ({
    groups,
  }) => {
    await groups.finish(0, 6);
    const dead = groups.join({ consumer: "a", batch: 6 });
    const taken = await take(dead, 2);
    await taken[1]?.ack();
    await dead.close();
    const successor = groups.join({ consumer: "b", claimIdleMs: 400 });
    const began = performance.now();
    const left = await take(successor, 5);
    expect(performance.now() - began).toBeGreaterThan(200);
    expect(idsOf(left).sort()).toEqual(["job-0", ...jobs(2, 6)]);
  });

  test("a group that reads results does not yield a result that another consumer claimed while this one was busy", async ({
    groups,
  }) => {
    await groups.finish(0, 6);
    const slow = groups.join({ consumer: "a", batch: 6, claimIdleMs: 300 })[Symbol.asyncIterator]();
    const first = await slow.next();
    const other = groups.join({ consumer: "b", claimIdleMs: 300 });
    const claimed = await take(other, 6);
    await Promise.all(claimed.map(({ ack }) => ack()));
    const second = slow.next();
    await groups.finish(6, 7);
    expect(first.value.jobId).toBe("job-0");
    expect((await second).value.jobId).toBe("job-6");
  });

  test("a group that reads results goes on when its connection is killed and when Redis starts again, and loses nothing", async ({
    groups,
  }) => {
    const group = groups.join({ consumer: "a" });
    const seen = new Set<string>();
    const reading = (async () => {
      for await (const { jobId, ack } of group) {
        seen.add(jobId);
        await ack();
      }
    })();
    for (let round = 0; round < 4; round++) {
      await groups.reading.killBlocked();
      await groups.finish(round * 10, round * 10 + 10);
    }
    await expect.poll(() => seen.size).toBe(40);
    await groups.reading.redis.kill();
    await groups.reading.redis.start();
    await groups.finish(40, 50);
    await expect.poll(() => seen.size).toBe(50);
    await group.close();
    await reading;
  });

  test("a group that reads results yields a result whose delivery was lost with its connection", async ({
    groups,
  }) => {
    const { commands } = groups.reading;
    await groups.finish(0, 2);
    const group = groups.join({ consumer: "a", claimIdleMs: 600_000 });
    const results = group[Symbol.asyncIterator]();
    await results.next();
    await results.next();
    // Pending for this consumer and never received, as after a lost reply.
    await groups.finish(2, 3);
    await commands.xreadgroup("GROUP", "billing", "a", "COUNT", 1, "STREAMS", redisKeys.results, ">");
    const third = results.next();
    await groups.reading.killBlocked();
    expect((await third).value.jobId).toBe("job-2");
  });

  test("a group that reads results counts trimmed results once, whether they were never delivered or not acknowledged", async ({
    groups,
  }) => {
    const { commands } = groups.reading;
    await groups.finish(0, 10);
    const first = groups.join({ consumer: "a", batch: 4 });
    expect(idsOf(await take(first, 4))).toEqual(jobs(0, 4));
    expect(first.lagLost).toBe(0);
    await first.close();
    await groups.finish(10, 20);
    await commands.xtrim(redisKeys.results, "MAXLEN", "=", 5);
    const second = groups.join({ consumer: "a", batch: 4 });
    expect(idsOf(await take(second, 5))).toEqual(jobs(15, 20));
    // Four were given and not acknowledged, eleven never given.
    expect(second.lagLost).toBe(15);
    await groups.finish(20, 21);
    await take(second, 1);
    expect(second.lagLost).toBe(15);
  });

  test("a group that reads results makes its group again if it was removed", async ({ groups }) => {
    const group = groups.join({ consumer: "a", claimIdleMs: 400 });
    const next = take(group, 1);
    await expect.poll(() => groups.reading.blocked()).toHaveLength(1);
    await groups.reading.commands.xgroup("DESTROY", redisKeys.results, "billing");
    await groups.finish(0, 1);
    expect(idsOf(await next)).toEqual(["job-0"]);
  });

  test("a group that reads results ends its loop when it is closed, and leaves no connection waiting", async ({
    groups,
  }) => {
    const group = groups.join({ consumer: "a" });
    const all = take(group, 1);
    await expect.poll(() => groups.reading.blocked()).toHaveLength(1);
    await group.close();
    expect(await all).toEqual([]);
    await expect.poll(() => groups.reading.blocked()).toEqual([]);
  });
});
