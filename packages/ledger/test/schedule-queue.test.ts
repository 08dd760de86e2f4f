import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Fault, fleetQueuePrefix, redisKeys, sandboxKey } from "@berth/protocol";
import { Queue } from "bullmq";
import { describe, expect, onTestFinished } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { handingOn, jobOf, scheduleOn } from "./support.ts";

const key = sandboxKey.parse("acme");

const dying = fileURLToPath(new URL("./fixtures/dying-scheduler.ts", import.meta.url));

describe("scheduled job", () => {
  test("a scheduled job is handed on once when it is due, and not before, by whichever of two workers", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    const workers = [handingOn(redis.connect("blocking")), handingOn(redis.connect("blocking"))];
    const ids = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    const due = new Map(ids.map((id, index) => [id, Date.now() + 200 + index * 20]));
    await Promise.all([...due].map(([id, dueAtMs]) => schedule.add(jobOf(id), dueAtMs)));
    const handed = () => workers.flatMap(({ jobs }) => jobs);
    await expect.poll(() => handed().length).toBe(ids.length);
    expect(new Set(handed().map(({ id }) => id))).toEqual(new Set(ids));
    expect(handed().filter(({ id, atMs }) => atMs < (due.get(id) ?? 0))).toEqual([]);
    await expect.poll(() => schedule.find(key, "job-39")).toBeUndefined();
    await Promise.all(workers.map(({ worker }) => worker.stop()));
    await schedule.close();
  });

  test("a scheduled job is handed on in the order of acceptance among those due at the same time, also by two workers", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    const ids = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    const dueAtMs = Date.now() + 1_000;
    for (const id of ids) await schedule.accept(jobOf(id, { session: "s" }), dueAtMs);
    const order: string[] = [];
    const onJob = async ({ id }: { id: string }) => {
      // Like the queue, this ignores an id that it knows.
      if (!order.includes(id)) order.push(id);
    };
    const workers = [redis.connect("blocking"), redis.connect("blocking")].map((own) =>
      handingOn(own, { onJob }),
    );
    await expect.poll(() => order.length).toBe(ids.length);
    expect(order).toEqual(ids);
    await expect.poll(() => redis.connect().exists(redisKeys.dueOrder(key))).toBe(0);
    await Promise.all(workers.map(({ worker }) => worker.stop()));
    await schedule.close();
  });

  test("a cancelled scheduled job does not hold up jobs that are due at the same time", async ({ redis }) => {
    const schedule = scheduleOn(redis.connect());
    const dueAtMs = Date.now() + 300;
    await schedule.accept(jobOf("gone"), dueAtMs);
    await schedule.accept(jobOf("kept"), dueAtMs);
    await schedule.remove("gone", 1);
    const { worker, jobs } = handingOn(redis.connect("blocking"));
    await expect.poll(() => jobs.map(({ id }) => id)).toEqual(["kept"]);
    await expect.poll(() => redis.connect().exists(redisKeys.dueOrder(key))).toBe(0);
    await worker.stop();
    await schedule.close();
  });

  test("a scheduled job that is added again has one entry, and each attempt has its own", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    const later = Date.now() + 60_000;
    await schedule.add(jobOf("job-a"), later);
    await schedule.add(jobOf("job-a"), later + 5);
    expect(await schedule.find(key, "job-a")).toMatchObject({ attempt: 1, dueAtMs: later });
    await redis.connect().hset(redisKeys.job(key, "job-a"), "added", 1);
    await schedule.add(jobOf("job-a", { attempt: 2 }), later + 10);
    expect(await schedule.find(key, "job-a")).toMatchObject({ attempt: 2, dueAtMs: later + 10 });
    await schedule.close();
  });

  test("a scheduled job that cannot be handed on is tried again until it can, and reported once", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    let tries = 0;
    const handing = handingOn(redis.connect("blocking"), {
      onJob: async () => {
        tries++;
        if (tries < 4) throw new Fault("sandbox-full", { sandboxKey: "acme", waiting: 5, limit: 5 });
      },
    });
    await schedule.add(jobOf("job-a"), Date.now());
    await expect.poll(() => schedule.find(key, "job-a")).toMatchObject({ failures: 1 });
    expect((await schedule.find(key, "job-a"))?.problem).toMatch(/5 jobs waiting/);
    await expect.poll(() => tries).toBe(4);
    await expect.poll(() => schedule.find(key, "job-a")).toBeUndefined();
    expect(handing.trouble).toHaveLength(1);
    await handing.worker.stop();
    await schedule.close();
  });

  test("a scheduled job that can never be accepted is refused once and not tried again", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    let tries = 0;
    const handing = handingOn(redis.connect("blocking"), {
      onJob: async () => {
        tries++;
        throw new Fault("wrong-pool", { sandboxKey: "acme", pool: "default", wanted: "gpu" });
      },
    });
    await schedule.add(jobOf("job-a"), Date.now());
    await expect.poll(() => handing.refused).toEqual(["job-a: wrong-pool"]);
    await expect.poll(() => schedule.find(key, "job-a")).toBeUndefined();
    expect([tries, handing.trouble]).toEqual([1, []]);
    await handing.worker.stop();
    await schedule.close();
  });

  test("a scheduled job whose worker is killed while handing it on is handed on by another", async ({
    redis,
  }) => {
    const schedule = scheduleOn(redis.connect());
    await schedule.add(jobOf("job-a"), Date.now());
    const victim = spawn(process.execPath, ["--conditions=@berth/source", dying], {
      env: { PATH: process.env.PATH ?? "", REDIS_URL: redis.url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void victim.kill("SIGKILL"));
    const [output] = await once(victim.stdout, "data");
    expect(String(output)).toBe("taken job-a\n");
    victim.kill("SIGKILL");
    await once(victim, "exit");
    const { worker, jobs } = handingOn(redis.connect("blocking"), { lockMs: 1_000 });
    await expect.poll(() => jobs.map(({ id }) => id)).toEqual(["job-a"]);
    await worker.stop();
    await schedule.close();
  });

  test("a scheduled job survives Redis being killed and started again", async ({ redis }) => {
    const schedule = scheduleOn(redis.connect("blocking"));
    const { worker, jobs } = handingOn(redis.connect("blocking"));
    const ids = Array.from({ length: 10 }, (_, index) => `job-${index}`);
    for (const id of ids) await schedule.add(jobOf(id), Date.now() + 1_500);
    await redis.kill();
    await redis.start();
    await expect.poll(() => jobs.map(({ id }) => id).sort(), { timeout: 30_000 }).toEqual(ids);
    await worker.stop();
    await schedule.close();
  });

  test("a scheduled job that is hurried is handed on at once, and only once", async ({ redis }) => {
    const schedule = scheduleOn(redis.connect());
    const { worker, jobs } = handingOn(redis.connect("blocking"));
    await schedule.add(jobOf("job-a"), Date.now() + 600_000);
    expect(await schedule.hurry(key, "job-a")).toBe(true);
    await expect.poll(() => jobs.length).toBe(1);
    await expect.poll(() => schedule.hurry(key, "job-a")).toBe(false);
    await worker.stop();
    await schedule.close();
  });

  test("a scheduled job that cannot be read is reported and blocks no other", async ({ redis }) => {
    const schedule = scheduleOn(redis.connect());
    const raw = new Queue("schedule", {
      connection: bullConnection(redis.connect()),
      prefix: fleetQueuePrefix,
    });
    await raw.add("poison", { job: { version: 9 }, dueAtMs: 1 }, { jobId: "poison-a" });
    await raw.add("poison", { nonsense: true }, { jobId: "poison-b" });
    const { worker, jobs, unreadable } = handingOn(redis.connect("blocking"));
    await schedule.add(jobOf("job-a"), Date.now());
    await expect.poll(() => jobs.length).toBe(1);
    expect(unreadable.map((text) => text.split(":")[0]).sort()).toEqual(["poison-a", "poison-b"]);
    await worker.stop();
    await raw.close();
    await schedule.close();
  });
});
