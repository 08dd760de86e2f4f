import type { EnqueuedJob } from "@berth/client";
import { type JobEvent, JobEvents, Schedule, Staging } from "@berth/ledger";
import { type Job, job as jobSchema, redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type TestFleet, test } from "../support/fleet.ts";

const key = sandboxKey.parse("acme");

const brisk = { BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };
const retry = { attempts: 5, backoffMs: 300, jitter: 0 };

async function eventsOf(fleet: TestFleet, { key, id }: EnqueuedJob): Promise<JobEvent[]> {
  return (await new JobEvents(fleet.redis.connect()).read(key, id, "")).map(({ event }) => event);
}

/** Exactly one terminal record, in its stream and in the results. */
async function endedOnce(fleet: TestFleet, job: EnqueuedJob): Promise<void> {
  const ends = (await eventsOf(fleet, job)).filter(({ type }) => type === "finished");
  const results = await fleet.redis.connect().xrange(redisKeys.results, "-", "+");
  expect(ends).toHaveLength(1);
  expect(results.filter(([, fields]) => fields[1] === job.id)).toHaveLength(1);
}

/** Until its command has said something. */
async function running(job: EnqueuedJob): Promise<void> {
  for await (const event of job.events()) if (event.type === "stdout") return;
  throw new Error("it ended without a word");
}

describe("job that may be retried", { timeout: 120_000 }, () => {
  test("a job that may be retried succeeds at its third attempt, after pauses that grow, with one terminal record", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const command = "echo x >> tries; echo try; [ $(wc -l < tries) -ge 3 ]";
    const job = await berth.tenant("acme").exec(command, { retry }).enqueued();
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    const events = await eventsOf(fleet, job);
    expect(events.map(({ type }) => type)).toEqual([
      ...["started", "stdout", "retrying"],
      ...["started", "stdout", "retrying"],
      ...["started", "stdout", "finished"],
    ]);
    const retries = events.filter((event) => event.type === "retrying");
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(retries.map(({ outcome }) => outcome)).toEqual(retries.map(() => ({ kind: "exited", code: 1 })));
    expect(retries.map(({ atMs, dueAtMs }) => dueAtMs - atMs)).toEqual([300, 600]);
    const starts = events.filter((event) => event.type === "started").slice(1);
    expect(starts.filter(({ atMs }, index) => atMs < (retries[index]?.dueAtMs ?? 0))).toEqual([]);
    await endedOnce(fleet, job);
    expect(await berth.deadLetters.list()).toEqual([]);
  });

  test("a job that may be retried does not hold up its session, and shows that it waits", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const slow = { attempts: 2, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };
    const job = await acme.exec("false", { retry: slow }).enqueued();
    expect((await acme.exec("echo next")).stdout).toBe("next\n");
    await expect.poll(() => berth.why(job.id)).toMatchObject({ state: "scheduled" });
    await job.cancel();
    expect((await job.result).outcome).toMatchObject({ kind: "cancelled" });
    await endedOnce(fleet, job);
  });

  test("a job whose worker dies runs again elsewhere, if it asks for a retry when lost", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const command = "echo x >> tries; echo up; [ $(wc -l < tries) -ge 2 ] || sleep 30";
    const job = await acme.exec(command, { retry }).enqueued();
    await running(job);
    first.signal("SIGKILL");
    await fleet.worker("worker-2", brisk);
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    const retried = (await eventsOf(fleet, job)).find(({ type }) => type === "retrying");
    expect(retried).toMatchObject({ attempt: 1, outcome: { kind: "lost" } });
    expect((await acme.exec("wc -l < tries")).stdout?.trim()).toBe("2");
    await endedOnce(fleet, job);
  });
});

describe("worker that gets SIGTERM and runs out of its drain time", { timeout: 120_000 }, () => {
  test("a worker that gets SIGTERM and runs out of its drain time leaves a job that may be retried to the next", async ({
    fleet,
  }) => {
    const first = await fleet.worker("worker-1", { ...brisk, BERTH_DRAIN_MS: "500" });
    const acme = fleet.client().tenant("acme");
    const command = "echo x >> tries; echo up; [ $(wc -l < tries) -ge 2 ] || sleep 60";
    const job = await acme.exec(command, { retry }).enqueued();
    await running(job);
    await fleet.worker("worker-2", brisk);
    first.signal("SIGTERM");
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    expect(await first.ended()).toBe(0);
    await endedOnce(fleet, job);
  });
});

describe("worker that dies between two steps of an ending", { timeout: 120_000 }, () => {
  const command = "echo x >> tries; echo up; [ $(wc -l < tries) -ge 2 ] || sleep 30";

  /** A job in the middle of its first attempt, and what its worker would do when that ends. */
  async function inTheMiddle(fleet: TestFleet, more: object = { retry }) {
    const worker = await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const id = "job-a";
    const job = await acme.exec(command, { id, ...more }).enqueued();
    await running(job);
    worker.signal("SIGSTOP");
    const redis = fleet.redis.connect();
    const [epoch, instance] = await redis.hmget(redisKeys.lease(job.key), "epoch", "instance");
    const holding = { epoch: Number(epoch), instance: instance ?? "" };
    const envelope = { version: 1, id, tenant: "acme", request: { kind: "exec", command }, ...more };
    const events = new JobEvents(redis);
    return {
      job,
      acme,
      putIn: async (attempt: number) => {
        const schedule = new Schedule(redis, new Staging(redis));
        const next: Job = jobSchema.parse({ ...envelope, attempt });
        await schedule.add(next, Date.now() + 200);
        await schedule.close();
      },
      publish: (event: JobEvent) => events.publish({ key: job.key, ...holding, jobId: id }, [event]),
      dies: async () => {
        worker.signal("SIGKILL");
        await fleet.worker("worker-2", brisk);
      },
    };
  }

  const retrying = (): JobEvent => ({
    type: "retrying",
    attempt: 1,
    outcome: { kind: "exited", code: 1 },
    atMs: Date.now(),
    dueAtMs: Date.now() + 200,
  });

  test("a worker that dies after queueing the next attempt and before publishing it repeats the job once", async ({
    fleet,
  }) => {
    const { job, acme, putIn, dies } = await inTheMiddle(fleet);
    await putIn(2);
    await dies();
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    await endedOnce(fleet, job);
    // Entries that were added twice have been handled by now.
    await acme.exec("sleep 1");
    expect((await acme.exec("wc -l < tries")).stdout?.trim()).toBe("2");
  });

  test("a worker that dies after publishing the next attempt does not run this one again", async ({
    fleet,
  }) => {
    const { job, acme, putIn, publish, dies } = await inTheMiddle(fleet);
    await putIn(2);
    expect(await publish(retrying())).toBe("published");
    await dies();
    expect((await job.result).outcome).toEqual({ kind: "exited", code: 0 });
    const starts = (await eventsOf(fleet, job)).filter((event) => event.type === "started");
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect((await acme.exec("wc -l < tries")).stdout?.trim()).toBe("2");
    await endedOnce(fleet, job);
  });

  test("the next worker buries a job whose worker died after publishing the end", async ({ fleet }) => {
    const { job, publish, dies } = await inTheMiddle(fleet, { retry: { attempts: 1 } });
    const result = {
      outcome: { kind: "exited", code: 3 },
      value: {},
      timing: { wallMs: 0, cpuMs: 0 },
    } as const;
    expect(await publish({ type: "finished", result })).toBe("published");
    await dies();
    const letters = () => fleet.client().deadLetters.list();
    await expect
      .poll(letters)
      .toMatchObject([
        { jobId: "job-a", reason: "retries-exhausted", outcome: { code: 3 }, worker: "worker-2" },
      ]);
    await endedOnce(fleet, job);
  });

  test("an attempt that comes again after it ended is dropped", async ({ fleet }) => {
    await fleet.worker("worker-1", brisk);
    const acme = fleet.client().tenant("acme");
    const count = "echo x >> tries; [ $(wc -l < tries) -ge 3 ]";
    const job = await acme.exec(count, { id: "job-a", retry }).enqueued();
    await job.result;
    const redis = fleet.redis.connect();
    const envelope = {
      version: 1,
      id: "job-a",
      tenant: "acme",
      request: { kind: "exec", command: count },
      retry,
    };
    // As if its index had been lost, and the schedule gave it out once more.
    await redis.hset(redisKeys.job(key, "job-a"), "added", 1);
    const schedule = new Schedule(redis, new Staging(redis));
    await schedule.add(jobSchema.parse({ ...envelope, attempt: 2 }), Date.now());
    await expect.poll(() => schedule.find(key, "job-a")).toBeUndefined();
    await acme.exec("true");
    expect((await acme.exec("wc -l < tries")).stdout?.trim()).toBe("3");
    await schedule.close();
    await endedOnce(fleet, job);
  });
});
