import { redisKeys, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { Staging } from "../src/events/staging.ts";
import { auditUnfinished } from "../src/jobs/unfinished-audit.ts";
import { Leases } from "../src/leases/leases.ts";
import { acceptJob } from "../src/queues/admission.ts";
import { queueKeys, waitKey } from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { Schedule } from "../src/schedule/schedule.ts";
import { jobOf, noStaging, scheduleOn, setCeilings } from "./support.ts";

const key = sandboxKey.parse("acme");
const done = { outcome: { kind: "exited", code: 0 }, value: {}, timing: { wallMs: 0, cpuMs: 0 } } as const;
const large = (id: string) => jobOf(id, { request: { kind: "exec", command: "x".repeat(10_000) } });
const counted = async (redis: Redis) => Number(await redis.get(redisKeys.waitingBytes("acme", "acme")));

/** Holds the sandbox, and publishes that an attempt ended for good, or that another follows. */
async function ending(redis: Redis) {
  const instance = "w1";
  const taken = await new Leases(redis).take(key, { worker: workerId.parse(instance), instance }, 60_000);
  if (!taken.taken) throw new Error(taken.why);
  const holding = { key, epoch: taken.epoch, instance };
  const events = new JobEvents(redis);
  return {
    finish: (jobId: string) =>
      events.publish({ ...holding, jobId, ends: { attempt: 1, leaves: true } }, [
        { type: "finished", result: done },
      ]),
    print: (jobId: string, text: string) =>
      events.publish({ ...holding, jobId, part: "p" }, [{ type: "stdout", bytes: Buffer.from(text) }]),
    retry: (jobId: string) =>
      events.publish({ ...holding, jobId, part: "r", ends: { attempt: 1, leaves: true } }, [
        { type: "retrying", attempt: 1, outcome: done.outcome, atMs: 0, dueAtMs: 0 },
      ]),
  };
}

describe("bytes of a tenant's requests that wait", () => {
  test("the bytes of waiting requests are counted once per job and subtracted at its end, whichever script ends it", async ({
    redis,
  }) => {
    const commands = redis.connect();
    for (const id of ["ends", "cancelled", "vanishes"]) await submitJob(commands, key, large(id));
    const each = (await counted(commands)) / 3;
    expect(each).toBeGreaterThan(10_000);
    const { finish, retry } = await ending(commands);
    await retry("ends");
    await submitJob(commands, key, { ...large("ends"), attempt: 2 });
    expect(await submitJob(commands, key, large("cancelled"))).toBe("known");
    expect(Math.round((await counted(commands)) / each)).toBe(3);
    await finish("ends");
    expect(await finish("ends")).toBe("finished-before");
    expect(Math.round((await counted(commands)) / each)).toBe(2);
    const waiting = { key, jobId: "cancelled", attempt: 1, inbox: undefined };
    const cancel = () =>
      new JobEvents(commands).cancel({ ...waiting, queue: queueKeys(key, "cancelled", 1) }, done);
    expect([await cancel(), await cancel()]).toEqual(["ended", "finished-before"]);
    expect(Math.round((await counted(commands)) / each)).toBe(1);
    await commands.del(waitKey(key));
    await auditUnfinished(commands, { from: 0, limit: 10, olderThanMs: 0 });
    expect(await commands.exists(redisKeys.waitingBytes("acme", "acme"))).toBe(0);
  });

  test("past the ceiling of waiting bytes a tenant's request is refused until one has ended, and other tenants' requests are not", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await setCeilings(commands, { waitingBytes: 25_000 });
    for (const id of ["a", "b"]) await submitJob(commands, key, large(id));
    const full = {
      code: "tenant-full",
      retry: true,
      context: { tenant: "acme", ceiling: "waitingBytes", limit: 25_000 },
    };
    await expect(submitJob(commands, key, large("c"))).rejects.toMatchObject(full);
    const later = scheduleOn(commands).accept(large("c"), Date.now() + 60_000);
    await expect(later).rejects.toMatchObject(full);
    const other = { ...large("d"), tenant: jobOf("d", { tenant: "globex" }).tenant };
    expect(await submitJob(commands, sandboxKey.parse("globex"), other)).toMatchObject({ live: false });
    await (await ending(commands)).finish("a");
    expect(await submitJob(commands, key, large("c"))).toMatchObject({ live: true });
  });

  test("the bytes of waiting requests include staged ones, and a single request of any size is accepted", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await setCeilings(commands, { waitingBytes: 1_000 });
    const job = large("a");
    const staged = await new Staging(commands).put(key, job);
    await submitJob(commands, key, job, staged);
    expect(await counted(commands)).toBeGreaterThan(10_000);
  });
});

describe("a delayed job", () => {
  const laterMs = () => Date.now() + 30 * 24 * 3_600_000;
  const delayed = (redis: Redis) =>
    redis.zrange(redisKeys.delayedOf("acme", "acme"), "0", "-1", "WITHSCORES");

  test("a delayed job that a full schedule refuses is not counted", async ({ redis }) => {
    const commands = redis.connect();
    const schedule = new Schedule(commands, noStaging, 1);
    await schedule.accept(jobOf("a"), laterMs());
    const before = await counted(commands);
    await expect(schedule.accept(jobOf("b"), laterMs())).rejects.toMatchObject({ code: "fleet-full" });
    expect(await counted(commands)).toBe(before);
    expect(await delayed(commands)).toHaveLength(2);
    await schedule.close();
  });

  test("a delayed job counts until it is due, and only for an hour if its producer died before scheduling it", async ({
    redis,
  }) => {
    const commands = redis.connect();
    expect(await acceptJob(commands, key, jobOf("orphan"))).toMatchObject({ bytes: expect.any(Number) });
    const [, untilMs] = await delayed(commands);
    expect(Number(untilMs) - Date.now()).toBeLessThan(3_700_000);
    const schedule = scheduleOn(commands);
    const dueAtMs = laterMs();
    await schedule.accept(jobOf("scheduled"), dueAtMs);
    const [, , , knownUntilMs] = await delayed(commands);
    expect(Number(knownUntilMs)).toBeGreaterThan(dueAtMs);
    await schedule.close();
  });

  test("a delayed job's request is measured in bytes, so one of multi-byte characters is staged", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const schedule = new Schedule(commands, new Staging(commands));
    const content = "\u20ac".repeat(100_000);
    await schedule.accept(jobOf("wide", { request: { kind: "write", path: "wide", content } }), laterMs());
    expect(await commands.exists(redisKeys.staged(key, "wide"))).toBe(1);
    await schedule.close();
  });
});

describe("bytes of a tenant's results", () => {
  test("the bytes of a tenant's results are counted once per job, earlier attempts and output included, whichever script ends it", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const kept = async () => {
      const hours = await commands.hvals(redisKeys.resultBytes("acme", "acme"));
      return hours.reduce((sum, bytes) => sum + Number(bytes), 0);
    };
    for (const id of ["ends", "cancelled", "vanishes"]) await submitJob(commands, key, jobOf(id));
    const { finish, retry, print } = await ending(commands);
    await retry("ends");
    await submitJob(commands, key, { ...jobOf("ends"), attempt: 2 });
    await print("ends", "x".repeat(5_000));
    expect(await kept(), "while it may go on, they do not expire").toBe(0);
    expect([await finish("ends"), await finish("ends")]).toEqual(["published", "finished-before"]);
    const afterEnd = await kept();
    expect(afterEnd).toBeGreaterThan(5_000);
    expect(afterEnd).toBeLessThan(6_000);
    const waiting = { key, jobId: "cancelled", attempt: 1, inbox: undefined };
    const cancel = () =>
      new JobEvents(commands).cancel({ ...waiting, queue: queueKeys(key, "cancelled", 1) }, done);
    expect([await cancel(), await cancel()]).toEqual(["ended", "finished-before"]);
    const afterCancel = await kept();
    expect(afterCancel).toBeGreaterThan(afterEnd);
    await commands.del(waitKey(key));
    await auditUnfinished(commands, { from: 0, limit: 10, olderThanMs: 0 });
    expect(await kept()).toBeGreaterThan(afterCancel);
  });
});
