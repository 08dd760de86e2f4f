import { type Job, redisKeys, sandboxKey, workerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { JobEvents } from "../src/events/job-events.ts";
import { auditUnfinished } from "../src/jobs/unfinished-audit.ts";
import { Leases } from "../src/leases/leases.ts";
import { JobSource } from "../src/queues/job-source.ts";
import { entryKey, failedKey, takenKey, waitKey } from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { Wakes } from "../src/queues/wakes.ts";
import { jobOf, scheduleOn } from "./support.ts";

const key = sandboxKey.parse("acme");
const laterMs = () => Date.now() + 3_600_000;
const lost = { kind: "lost", message: "the job was in no queue, and no worker ran it" };

const audit = (redis: Redis, more: object = {}) =>
  auditUnfinished(redis, { from: 0, limit: 100, olderThanMs: 0, ...more });
const submit = (redis: Redis, job: Job) => submitJob(redis, key, job);
const unfinished = (redis: Redis) => redis.zrange(redisKeys.unfinished, "0", "-1");

async function typesOf(redis: Redis, id: string): Promise<string[]> {
  return (await new JobEvents(redis).read(key, id, "")).map(({ event }) => event.type);
}

/** Holds the sandbox and begins its next job. */
async function begin(redis: Redis) {
  const instance = "w1";
  const taken = await new Leases(redis).take(key, { worker: workerId.parse(instance), instance }, 60_000);
  if (!taken.taken) throw new Error(`the lease cannot be taken: ${taken.why}`);
  const { epoch } = taken;
  const wakes = new Wakes(redis, instance);
  const source = new JobSource(redis, key, { epoch, instance }, wakes);
  const held = await source.next(0);
  if (!held) throw new Error("no job waits");
  const to = { key, epoch, instance, jobId: held.id };
  const events = new JobEvents(redis);
  const position = { queuedId: held.queuedId, before: [], notAfterMs: taken.deadlineMs };
  const started = { worker: instance, epoch, atMs: 0, attempt: held.attempt };
  expect(await events.begin(to, position, started)).toBe("begun");
  await source.close();
  wakes.stop();
  return { to, attempt: held.attempt, events };
}

describe("job that no queue, schedule or worker has", () => {
  test("a job that no queue, schedule or worker has is ended as lost, once, in its stream, the results and its client's inbox", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("phantom", { inbox: "client-1" }));
    await commands.del(waitKey(key));
    expect(await audit(commands)).toEqual({ vanished: [{ key, jobId: "phantom" }], next: 0 });
    expect(await audit(commands)).toEqual({ vanished: [], next: 0 });
    expect(await new JobEvents(commands).progress(key, "phantom")).toMatchObject({
      state: "finished",
      result: { outcome: lost },
    });
    expect(await typesOf(commands, "phantom")).toEqual(["finished"]);
    expect(await commands.xlen(redisKeys.results)).toBe(1);
    expect(await commands.xlen(redisKeys.inbox("client-1"))).toBe(1);
    expect(await commands.hget(redisKeys.job(key, "phantom"), "outcome")).toBe("lost");
    expect(await commands.pttl(redisKeys.job(key, "phantom"))).toBeGreaterThan(0);
    expect(await commands.zrange(failedKey(key), "0", "-1"), "on the board").toEqual(["phantom"]);
    expect(await commands.hget(entryKey(key, "phantom"), "failedReason")).toBe(`lost: ${lost.message}`);
    expect(await unfinished(commands)).toEqual([]);
  });

  test("a job that no queue, schedule or worker has is ended when its entry is gone too, and on a Redis without memory", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("phantom"));
    await commands.del(waitKey(key), entryKey(key, "phantom"));
    await commands.config("SET", "maxmemory", "1");
    expect((await audit(commands)).vanished).toEqual([{ key, jobId: "phantom" }]);
    await commands.config("SET", "maxmemory", "0");
    expect(await typesOf(commands, "phantom")).toEqual(["finished"]);
  });

  test("a job that an earlier epoch began and no queue has is ended, though another worker holds the sandbox", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("begun"));
    const { to } = await begin(commands);
    await commands.del(takenKey(key));
    await new Leases(commands).release(key, to, { onlyIfEmpty: false, queueKeys: [] });
    await new Leases(commands).take(key, { worker: workerId.parse("w2"), instance: "w2" }, 60_000);
    expect((await audit(commands)).vanished).toEqual([{ key, jobId: "begun" }]);
    expect(await typesOf(commands, "begun")).toEqual(["started", "finished"]);
  });

  test("a finished job that no queue has gets no second end, and is no longer counted", async ({ redis }) => {
    const commands = redis.connect();
    for (const id of ["by-record", "by-events"]) await submit(commands, jobOf(id));
    await commands.del(waitKey(key));
    expect((await audit(commands)).vanished).toHaveLength(2);
    await commands.del(redisKeys.events(key, "by-record"));
    await commands.hdel(redisKeys.job(key, "by-events"), "outcome");
    for (const id of ["by-record", "by-events"]) await commands.zadd(redisKeys.unfinished, 1, id);
    expect((await audit(commands)).vanished).toEqual([]);
    expect(await typesOf(commands, "by-record")).toEqual([]);
    expect(await typesOf(commands, "by-events")).toEqual(["finished"]);
    expect(await commands.xlen(redisKeys.results)).toBe(2);
    expect(await unfinished(commands)).toEqual([]);
  });

  test("a job's id has no key without expiry if its submission was delivered after its end", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("ended"));
    await commands.del(waitKey(key));
    expect((await audit(commands)).vanished).toHaveLength(1);
    for (const id of ["ended", "forgotten"]) {
      await commands.set(redisKeys.sandboxOf(id), key);
      await commands.zadd(redisKeys.unfinished, 1, id);
    }
    expect(await audit(commands)).toEqual({ vanished: [], next: 0 });
    expect(await unfinished(commands)).toEqual([]);
    for (const id of ["ended", "forgotten"])
      expect(await commands.pttl(redisKeys.sandboxOf(id)), id).toBeGreaterThan(0);
  });

  test("a job that no queue, schedule or worker has is no longer counted when its record is gone too", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await commands.zadd(redisKeys.unfinished, 1, "unknown");
    expect(await audit(commands)).toEqual({ vanished: [], next: 0 });
    expect(await unfinished(commands)).toEqual([]);
  });
});

describe("the audit leaves alone", () => {
  test("the audit leaves alone a waiting job, and one that a dead worker had taken", async ({ redis }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("taken"));
    await begin(commands);
    await commands.hset(redisKeys.lease(key), "deadline", 1);
    await submit(commands, jobOf("plain"));
    await submit(commands, jobOf("urgent", { priority: 3 }));
    expect((await audit(commands)).vanished).toEqual([]);
    expect((await unfinished(commands)).toSorted()).toEqual(["plain", "taken", "urgent"]);
  });

  test("the audit leaves alone a delayed job, also when it counts as unfinished", async ({ redis }) => {
    const commands = redis.connect();
    const schedule = scheduleOn(commands);
    await schedule.accept(jobOf("sooner-or-later"), laterMs());
    await commands.zadd(redisKeys.unfinished, 1, "sooner-or-later");
    expect((await audit(commands)).vanished).toEqual([]);
    expect(await typesOf(commands, "sooner-or-later")).toEqual([]);
    await schedule.close();
  });

  test("the audit leaves alone a running job, also when its entry was removed from the queue", async ({
    redis,
  }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("running"));
    const { to, attempt, events } = await begin(commands);
    expect((await audit(commands)).vanished).toEqual([]);
    await commands.del(takenKey(key), entryKey(key, "running"));
    expect((await audit(commands)).vanished).toEqual([]);
    await events.publish({ ...to, part: `${to.epoch}-1` }, [{ type: "stdout", bytes: Buffer.from("x") }]);
    expect((await audit(commands)).vanished).toEqual([]);
    const result = {
      outcome: { kind: "exited", code: 0 },
      value: {},
      timing: { wallMs: 0, cpuMs: 0 },
    } as const;
    await events.publish({ ...to, ends: { attempt, leaves: true } }, [{ type: "finished", result }]);
    expect(await typesOf(commands, "running")).toEqual(["started", "stdout", "finished"]);
  });

  test("the audit leaves alone a job that was added less than a given time ago", async ({ redis }) => {
    const commands = redis.connect();
    await submit(commands, jobOf("young"));
    await commands.del(waitKey(key));
    expect((await audit(commands, { olderThanMs: 60_000 })).vanished).toEqual([]);
    expect((await audit(commands)).vanished).toHaveLength(1);
  });
});

describe.each(["single", "cluster"] as const)("on a %s, a job between two attempts", (topology) => {
  const onIt = test.extend({ topology });

  onIt(
    `on a ${topology}, the audit ends a job between two attempts if its retry is gone`,
    async ({ redis }) => {
      const commands = redis.connect();
      await submit(commands, jobOf("retried"));
      const { to, attempt, events } = await begin(commands);
      const ended = { attempt, outcome: { kind: "exited", code: 1 }, atMs: 0, dueAtMs: 0 } as const;
      await events.publish({ ...to, ends: { attempt, leaves: true } }, [{ type: "retrying", ...ended }]);
      expect((await audit(commands)).vanished).toEqual([{ key, jobId: "retried" }]);
      expect(await commands.exists(entryKey(key, "retried")), "Bull Board shows the attempt that ended").toBe(
        1,
      );
    },
  );

  onIt(
    `on a ${topology}, the audit keeps a job between two attempts at every step of its retry`,
    async ({ redis }) => {
      const commands = redis.connect();
      const schedule = scheduleOn(commands);
      await submit(commands, jobOf("again"));
      const { to, attempt, events } = await begin(commands);
      const next = jobOf("again", { attempt: 2 });
      await schedule.add(next, laterMs());
      expect((await audit(commands)).vanished, "scheduled, and not published yet").toEqual([]);
      const ended = { attempt, outcome: { kind: "exited", code: 1 }, atMs: 0, dueAtMs: 0 } as const;
      await events.publish({ ...to, ends: { attempt, leaves: true } }, [{ type: "retrying", ...ended }]);
      expect((await audit(commands)).vanished, "scheduled").toEqual([]);
      await submit(commands, next);
      expect((await audit(commands)).vanished, "handed on, and still in the schedule").toEqual([]);
      await schedule.remove("again", 2);
      expect((await audit(commands)).vanished, "handed on").toEqual([]);
      expect(await unfinished(commands)).toEqual(["again"]);
      await schedule.close();
    },
  );
});

test("the audit walks all unfinished jobs page by page, skips those that a queue has, and begins again", async ({
  redis,
}) => {
  const commands = redis.connect();
  const ids = Array.from({ length: 10 }, (_, index) => `job-${index}`);
  for (const id of ids) await submit(commands, jobOf(id));
  for (const id of ["job-1", "job-4", "job-9"]) await commands.lrem(waitKey(key), 1, id);
  const found: string[] = [];
  let from = 0;
  do {
    const page = await audit(commands, { from, limit: 3 });
    found.push(...page.vanished.map(({ jobId }) => jobId));
    from = page.next;
  } while (from > 0);
  expect(found.toSorted()).toEqual(["job-1", "job-4", "job-9"]);
  expect(await unfinished(commands)).toHaveLength(7);
});
