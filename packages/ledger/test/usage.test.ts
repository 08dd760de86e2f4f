import { dayName, dayNumber, redisKeys, sandboxKey, tenantId, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { Leases } from "../src/leases/leases.ts";
import { submitJob } from "../src/queues/submit.ts";
import { fleetUsage, usageReport } from "../src/usage/usage-report.ts";
import { jobOf } from "./support.ts";

const tenant = tenantId.parse("acme");
const key = sandboxKey.parse("acme");
const used = {
  timing: { wallMs: 1_500, cpuMs: 250.5 },
  usage: { inBytes: 100, outBytes: 30, peakMemoryBytes: 2 * 1024 ** 2 },
};
const exited = (code: number) => ({ outcome: { kind: "exited", code }, value: {}, ...used }) as const;
const today = () => dayNumber(Date.now());

async function holding(redis: Redis, usageDays?: number) {
  const instance = "w1";
  const taken = await new Leases(redis).take(key, { worker: workerId.parse(instance), instance }, 60_000);
  if (!taken.taken) throw new Error(taken.why);
  const to = { key, epoch: taken.epoch, instance };
  const events = new JobEvents(redis, { usageDays });
  const submit = (id: string) =>
    submitJob(redis, key, jobOf(id, { request: { kind: "exec", command: "x" } }));
  return {
    submit,
    finish: async (jobId: string, code = 0) => {
      await submit(jobId);
      return events.publish({ ...to, jobId, ends: { attempt: 1, leaves: true } }, [
        { type: "finished", result: exited(code) },
      ]);
    },
    retry: async (jobId: string) => {
      await submit(jobId);
      const { outcome } = exited(1);
      const ended = { attempt: 1, outcome, atMs: 0, dueAtMs: 0, used } as const;
      return events.publish({ ...to, jobId, part: "r", ends: { attempt: 1, leaves: true } }, [
        { type: "retrying", ...ended },
      ]);
    },
    events,
  };
}

describe("what a tenant's jobs used", () => {
  test("the step that ends a job adds its usage, once however often the end is published", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { finish } = await holding(commands);
    expect(await usageReport(commands, tenant)).toMatchObject({
      days: [],
      total: { jobs: 0, cpuSeconds: 0 },
    });
    expect(await finish("a")).toBe("published");
    expect(await finish("a")).toBe("finished-before");
    await finish("b", 1);
    const sums = {
      ...{ jobs: 2, failed: 1, cpuSeconds: 0.501, wallSeconds: 3, peakMemoryBytes: 2 * 1024 ** 2 },
      ...{ inBytes: 200, outBytes: 60 },
    };
    const report = await usageReport(commands, tenant);
    expect(report).toEqual({
      tenant,
      ...{ from: dayName(today() - 29), to: dayName(today()) },
      total: sums,
      days: [{ day: dayName(today()), ...sums }],
    });
    expect(await fleetUsage(commands)).toMatchObject({ tenants: [{ tenant, ...sums }], truncated: false });
  });

  test("usage includes attempts that a retry followed, and does not count them as jobs", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { retry, events } = await holding(commands);
    expect(await retry("a")).toBe("published");
    expect(await retry("a")).toBe("published");
    expect((await usageReport(commands, tenant)).total).toMatchObject({
      jobs: 0,
      failed: 0,
      cpuSeconds: 0.2505,
    });
    const [last] = (await events.read(key, "a", "")).slice(-1);
    expect(last?.event).not.toHaveProperty("used");
  });

  test("usage is kept for the configured days in one key, and both of its records expire", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const { finish } = await holding(commands, 3);
    const hash = redisKeys.usage("acme", "acme");
    const old = Object.fromEntries([1, 2, 3, 400].map((ago) => [today() - ago, "1 0 1000000 0 0 0 0"]));
    await commands.hset(hash, old);
    await commands.zadd(redisKeys.usageTenants, today() - 2, "lately", today() - 3, "long-ago");
    await finish("a");
    expect((await commands.hkeys(hash)).map(Number).sort()).toEqual([2, 1, 0].map((ago) => today() - ago));
    const threeDaysMs = 3 * 86_400_000;
    expect(await commands.pttl(hash)).toBeGreaterThan(threeDaysMs - 60_000);
    expect(await commands.pttl(hash)).toBeLessThanOrEqual(threeDaysMs);
    expect(await commands.zrange(redisKeys.usageTenants, "0", "-1")).toEqual(["lately", "acme"]);
    const yesterday = dayName(today() - 1);
    const range = await usageReport(commands, tenant, { from: yesterday, to: yesterday });
    expect(range).toMatchObject({ total: { jobs: 1, cpuSeconds: 1 }, days: [{ day: yesterday }] });
  });

  test.for([
    [
      { from: "2026-11-18", to: "2026-11-17" },
      "the range ends on 2026-11-17, before it begins on 2026-11-18",
    ],
    [{ from: "2020-01-01", to: "2026-01-01" }, "the range has 2193 days; at most 400 are read at once"],
    [{ from: "yesterday" }, "from"],
    [{ since: "2026-11-18" }, "since"],
  ] as const)("usage is refused for the range %j", async ([range, problem], { redis }) => {
    await expect(usageReport(redis.connect(), tenant, range as object)).rejects.toMatchObject({
      code: "invalid-argument",
      message: expect.stringContaining(problem),
    });
  });
});
