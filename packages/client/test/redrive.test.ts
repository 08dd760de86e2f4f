import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { Berth } from "../src/berth.ts";

const acme = sandboxKey.parse("acme");

const test = withRedis.extend<{ berth: Berth }>({
  berth: async ({ redis }, use) => {
    const berth = new Berth({ redis: redis.url });
    await use(berth);
    await berth.close();
  },
});

/** A job that has ended, without a worker: it was cancelled before it began. */
async function ended(berth: Berth, id: string, more: object = {}): Promise<string> {
  const job = await berth
    .tenant("acme")
    .exec("make", { id, ...more })
    .enqueued();
  await job.cancel();
  return job.id;
}

describe("redrive of a job", () => {
  test("a redrive submits the job under the next free id with a label of the first, and leaves the first as it was", async ({
    berth,
  }) => {
    const more = {
      labels: { team: "blue" },
      session: "build",
      priority: 2,
      deadlineAtMs: Date.now() + 60_000,
    };
    const id = await ended(berth, "build", more);
    const before = await berth.jobs.find(id);
    expect(await berth.jobs.redrive(id)).toBe("build-redrive-1");
    expect(await berth.jobs.redrive(id)).toBe("build-redrive-2");
    expect(await berth.jobs.find(id)).toEqual(before);
    expect(await berth.jobs.find("build-redrive-1")).toMatchObject({
      ...{ tenant: "acme", session: "build", kind: "exec", state: "waiting" },
    });
    await berth.cancel("build-redrive-2");
    expect(await berth.jobs.redrive("build-redrive-2"), "named after the first").toBe("build-redrive-3");
  });

  test("a redrive keeps the job's request, labels and priority, and drops its deadline and its client's inbox", async ({
    berth,
    redis,
  }) => {
    await ended(berth, "build", { labels: { team: "blue" }, priority: 2, deadlineAtMs: Date.now() + 60_000 });
    const again = await berth.jobs.redrive("build");
    const data = await redis.connect().hget(`berth:{acme}:jobs:${again}`, "data");
    const { request, ...job } = JSON.parse(data ?? "{}");
    expect(request).toMatchObject({ kind: "exec", command: "make" });
    expect(job).toMatchObject({ priority: 2, labels: { team: "blue", "berth.redrive-of": "build" } });
    expect(job).not.toHaveProperty("deadlineAtMs");
    expect(job).not.toHaveProperty("inbox");
  });

  test("a redrive is refused like any submission when the sandbox is full", async ({ berth, redis }) => {
    await ended(berth, "build");
    await redis.connect().hset(redisKeys.settings, "maxWaitingPerSandbox", 1);
    await berth.tenant("acme").exec("true").enqueued();
    await expect(berth.jobs.redrive("build")).rejects.toMatchObject({ code: "sandbox-full" });
    expect((await berth.jobs.failed(acme)).ids, "a cancelled job is run again on its own only").toEqual([]);
  });

  test("a redrive is refused for a job that is not known, has not ended, or whose request is no longer kept", async ({
    berth,
    redis,
  }) => {
    const refused = (id: string, reason: string) =>
      expect(berth.jobs.redrive(id), id).rejects.toMatchObject({
        code: "not-redrivable",
        context: { reason },
      });
    await refused("unknown", "not-found");
    await berth.tenant("acme").exec("true", { id: "waiting" }).enqueued();
    await refused("waiting", "unfinished");
    await ended(berth, "large", { stdin: "x".repeat(300 * 1024) });
    await refused("large", "not-found");
    await ended(berth, "gone");
    await redis.connect().del("berth:{acme}:jobs:gone");
    await refused("gone", "not-found");
    await ended(berth, "damaged");
    await redis.connect().hset("berth:{acme}:jobs:damaged", "data", '{"id":"damaged"}');
    await refused("damaged", "unreadable");
  });

  test("two that run a job again at the same moment submit no id twice", async ({ berth, redis }) => {
    await ended(berth, "build");
    const other = new Berth({ redis: redis.url });
    const ids = await Promise.all([berth.jobs.redrive("build"), other.jobs.redrive("build")]);
    await other.close();
    const waiting = await berth.jobs.list();
    expect(waiting.map(({ id }) => id).sort()).toEqual([...new Set(ids)].sort());
  });
});

test("tenants are found by any part of their names, however many others there are", async ({
  berth,
  redis,
}) => {
  const client = redis.connect();
  const others = Array.from({ length: 3_000 }, (_, index) => [index, `other-${index}.s.blue`]).flat();
  await client.zadd(redisKeys.sandboxes, ...(others as [number, string]));
  await client.zadd(redisKeys.sandboxes, 1, "blue-team", 2, "blue-team.a.coder", 3, "true-blue");
  expect(await berth.tenantsLike("blue")).toEqual(["blue-team", "true-blue"]);
  expect(await berth.tenantsLike("other")).toHaveLength(50);
  for (const part of ["*", "BLUE", "", "x".repeat(64), "bl?e", "[a-z]"])
    expect(await berth.tenantsLike(part), part).toEqual([]);
});
