import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Berth, EnqueuedJob } from "@berth/client";
import { JobEvents, Leases, queueKeys, Schedule, Staging, takenKey, type WaitingJob } from "@berth/ledger";
import { epoch, flatResult, type JobResult, redisKeys, sandboxKey, workerId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";
import type { HistoryJob } from "../support/history.ts";
import { exec, seeded } from "../support/load.ts";

const key = sandboxKey.parse("acme");

const acmeKey = sandboxKey.parse("acme");
const beforeItBegan = "by request, before it began";
const unbegunResult: JobResult = {
  outcome: { kind: "cancelled", reason: beforeItBegan },
  value: {},
  timing: { wallMs: 0, cpuMs: 0 },
  text: "[cancelled: by request, before it began]\n[exit 130]",
};
/** A job's outcome, as the client reads it. */
const cancelled: JobResult = {
  ...unbegunResult,
  timing: { ...unbegunResult.timing, finishedAtMs: expect.any(Number) },
};

/** The result of a job whose terminal record is written: it is not waited for. */
async function written(fleet: TestFleet, job: EnqueuedJob): Promise<JobResult> {
  expect((await typesOf(fleet, job)).at(-1)).toBe("finished");
  return job.result;
}

async function typesOf(fleet: TestFleet, { key, id }: EnqueuedJob): Promise<string[]> {
  const events = await new JobEvents(fleet.redis.connect()).read(key, id, "");
  return events.map(({ event }) => event.type);
}

/** How often a job is among the fleet's results. */
async function timesTold(fleet: TestFleet, { id }: EnqueuedJob): Promise<number> {
  const results = await fleet.redis.connect().xrange(redisKeys.results, "-", "+");
  return results.filter(([, fields]) => fields[1] === id).length;
}

function waitingJob({ key, id }: Pick<EnqueuedJob, "key" | "id">): WaitingJob {
  return { key, jobId: id, attempt: 1, inbox: undefined, queue: queueKeys(key, id, 1) };
}

const history = ({ id, key }: EnqueuedJob): HistoryJob => ({ id, key, session: "main", repeatable: false });

/** By Redis' own record: a sandbox that a worker ever took has an epoch. */
async function wasTaken(berth: Berth, tenant: string): Promise<boolean> {
  return (await berth.sandboxes({ tenant })).some(({ epoch: taken }) => taken > 0);
}

/** Whether a container was ever started for it: its workspace stays. */
function wasOpened(fleet: TestFleet, key: string): boolean {
  return existsSync(join(fleet.workspaces, key));
}

describe("cancelling a job that waits", () => {
  test("cancelling a waiting job of a paused tenant ends it at once, with one terminal record", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.exec("true");
    await acme.pause();
    await expect.poll(async () => (await berth.sandboxes())[0]?.worker).toBeUndefined();
    const [doomed, kept] = [
      await acme.exec("echo never").enqueued(),
      await acme.exec("echo behind it").enqueued(),
    ];
    await fleet.client().cancel(doomed.id);
    expect(await written(fleet, doomed)).toEqual(cancelled);
    expect(await berth.why(doomed.id)).toMatchObject({ state: "finished" });
    expect(await kept.status()).toBe("waiting");
    await doomed.cancel();
    await acme.resume();
    expect((await kept.result).value.stdout).toBe("behind it\n");
    expect(await typesOf(fleet, doomed)).toEqual(["finished"]);
    expect(await timesTold(fleet, doomed)).toBe(1);
    await fleet.provesSound([doomed, kept].map(history));
  });

  test("cancelling a job that waits while no worker is there ends it at once, and the worker that comes has nothing to do", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const job = await berth.tenant("acme").exec("echo never", { priority: 3 }).enqueued();
    await job.cancel();
    expect(await written(fleet, job)).toEqual(cancelled);
    expect(await berth.scale()).toMatchObject({ unfinishedJobs: 0 });
    await fleet.worker("worker-1", { ...busybox, BERTH_IDLE_MS: "300" });
    expect((await berth.tenant("globex").exec("echo mine")).stdout).toBe("mine\n");
    // Its offer was before that one's, and came to nothing.
    expect(await wasTaken(berth, "acme")).toBe(false);
    expect(wasOpened(fleet, "acme")).toBe(false);
    await fleet.provesSound([history(job)]);
  });

  test("cancelling a job that waits far behind others in its sandbox's queue ends it at once, and they go on in order", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const acme = fleet.client().tenant("acme");
    const first = await acme.exec("sleep 60").enqueued();
    const rest = await Promise.all(
      Array.from({ length: 200 }, (_, index) => acme.exec(`echo ${index} >> order`).enqueued()),
    );
    await expect.poll(() => first.status()).toBe("running");
    const doomed = rest.slice(190);
    await Promise.all(doomed.map((job) => job.cancel()));
    for (const job of doomed) expect(await written(fleet, job)).toEqual(cancelled);
    expect(await first.status(), "they did not wait for their turn").toBe("running");
    await first.cancel();
    const value = await acme.exec("cat order");
    expect(value.stdout).toBe(Array.from({ length: 190 }, (_, index) => `${index}\n`).join(""));
    await fleet.provesSound([first, ...rest].map(history));
  });

  test("cancelling a job that a dead worker had taken and not begun ends it at once", async ({ fleet }) => {
    const worker = await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const running = await berth.tenant("acme").exec("sleep 60").enqueued();
    const parked = await berth.tenant("acme").exec("echo never").enqueued();
    const taken = () => fleet.redis.connect().llen(takenKey(acmeKey));
    await expect.poll(taken).toBe(2);
    await expect.poll(() => running.status()).toBe("running");
    worker.signal("SIGKILL");
    await worker.ended();
    await parked.cancel();
    expect(await written(fleet, parked)).toEqual(cancelled);
    await fleet.worker("worker-2", busybox);
    expect((await running.result).outcome.kind).toBe("lost");
    expect(await typesOf(fleet, parked)).toEqual(["finished"]);
    await fleet.provesSound([running, parked].map(history));
  });

  test("cancelling a job that waits with a request too large for the queue leaves neither the request nor a dead letter", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    await acme.pause();
    const job = await acme.write("large", "x".repeat(400 * 1024)).enqueued();
    await job.cancel();
    expect(await written(fleet, job)).toEqual(cancelled);
    await fleet.worker("worker-1", busybox);
    await acme.resume();
    expect((await acme.list()).entries).toEqual([]);
    expect(await berth.deadLetters.list()).toEqual([]);
    const leftMs = await fleet.redis.connect().pttl(redisKeys.staged(acmeKey, job.id));
    expect(leftMs).toBeLessThanOrEqual(60_000);
    expect(leftMs, "it does not stay").not.toBe(-1);
  });
});

describe("cancelling a job that waits for its time", () => {
  test("cancelling a job that waits for its time ends it at once, and nothing is started for it when it would have been due", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const dueMs = Date.now() + 3_000;
    const job = await acme.exec("echo never", { runAtMs: dueMs }).enqueued();
    const staged = await acme.write("f", "x".repeat(400 * 1024), { runAtMs: dueMs }).enqueued();
    for (const one of [job, staged]) {
      await one.cancel();
      expect(await written(fleet, one)).toEqual(cancelled);
      expect(await berth.why(one.id)).toMatchObject({ state: "finished" });
    }
    // Only now: it cannot have begun them before they were cancelled, however slow this machine is.
    await fleet.worker("worker-1", busybox);
    // Due at the same time: when it has run, those would have.
    await berth.tenant("globex").exec("true", { runAtMs: dueMs + 500 });
    expect(await wasTaken(berth, "acme")).toBe(false);
    expect([wasOpened(fleet, "acme"), wasOpened(fleet, "globex")]).toEqual([false, true]);
    expect(await fleet.redis.connect().keys("berth:{acme}:jobs:*"), "no queue was made for it").toEqual([]);
    expect(await berth.deadLetters.list()).toEqual([]);
    expect(await typesOf(fleet, job)).toEqual(["finished"]);
    const again = await acme.exec("echo never", { id: job.id });
    expect(again, "the id stands for the job that was cancelled").toEqual(flatResult("exec", cancelled));
  });

  test("a client that dies while it cancels a delayed job has ended it all the same", async ({ fleet }) => {
    const redis = fleet.redis.connect();
    const schedule = new Schedule(redis, new Staging(redis));
    const berth = fleet.client();
    const dueMs = Date.now() + 1_500;
    const job = await berth.tenant("acme").exec("echo never", { runAtMs: dueMs }).enqueued();
    const found = await schedule.find(key, job.id);
    const waiting = { ...waitingJob(job), inbox: found?.inbox, dueAtMs: dueMs };
    expect(await new JobEvents(redis).cancel(waiting, unbegunResult)).toBe("ended");
    expect(await written(fleet, job)).toEqual(unbegunResult);
    await fleet.worker("worker-1", busybox);
    await expect.poll(() => schedule.find(key, job.id)).toBeUndefined();
    expect(Date.now()).toBeGreaterThanOrEqual(dueMs);
    await berth.tenant("globex").exec("true");
    expect(await wasTaken(berth, "acme")).toBe(false);
    await schedule.close();
  });

  test("cancelling a job that waits for its time between two attempts ends all of them", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", busybox);
    const berth = fleet.client();
    const retry = { attempts: 3, backoffMs: 600_000, jitter: 0 };
    const job = await berth.tenant("acme").exec("exit 1", { retry }).enqueued();
    await expect.poll(async () => (await typesOf(fleet, job)).at(-1)).toBe("retrying");
    await job.cancel();
    expect(await written(fleet, job)).toEqual(cancelled);
    expect(await typesOf(fleet, job)).toEqual(["started", "retrying", "finished"]);
    expect(await timesTold(fleet, job)).toBe(1);
    await fleet.provesSound([{ ...history(job), repeatable: true }]);
  });
});

describe("cancelling against a worker that takes the job", () => {
  test('cancelling while a worker takes the job gives one terminal record, and "never began" never ran', async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { ...busybox, BERTH_IDLE_MS: "50" });
    await fleet.worker("worker-2", { ...busybox, BERTH_IDLE_MS: "50" });
    const [producer, other] = [fleet.client(), fleet.client()];
    const events = new JobEvents(fleet.redis.connect());
    const pick = seeded(7);
    const ends = new Map<string, number>();
    const jobs: HistoryJob[] = [];
    for (let round = 0; round < 40; round++) {
      const planned = ["acme", "globex", "initech"].map((tenant) => exec(tenant, `${tenant}.${round}`));
      const pausesMs = planned.map(() => pick(25));
      await Promise.all(
        planned.map(async ({ order, ...plan }, index) => {
          const job = await producer.submit(order).enqueued();
          jobs.push({ ...plan, id: job.id, key: job.key, session: "main" });
          await new Promise((resolve) => setTimeout(resolve, pausesMs[index]));
          // As one would who saw it waiting a moment ago.
          if (round % 2 === 1) await events.cancel(waitingJob(job), unbegunResult);
          await other.cancel(job.id);
          const { outcome } = (await (await other.job(job.id))?.result) ?? unbegunResult;
          const how = outcome.kind === "cancelled" ? outcome.reason : outcome.kind;
          ends.set(how, (ends.get(how) ?? 0) + 1);
          if (how === beforeItBegan) expect(await typesOf(fleet, job)).toEqual(["finished"]);
        }),
      );
    }
    await fleet.provesSound(jobs);
    const unbegun = ends.get(beforeItBegan) ?? 0;
    expect(unbegun, "some were before the worker").toBeGreaterThan(0);
    expect(jobs.length - unbegun, "some were behind it").toBeGreaterThan(0);
  });

  test("if a job starts and is cancelled at once, the first of the two counts and the other sees it", async ({
    fleet,
  }) => {
    const redis = fleet.redis.connect();
    const [events, leases] = [new JobEvents(redis), new Leases(redis)];
    const acme = fleet.client().tenant("acme");
    const taken = await leases.take(acmeKey, { worker: workerId.parse("w"), instance: "i" }, 60_000);
    const mine = { key: acmeKey, instance: "i", epoch: epoch.parse(taken.taken && taken.epoch) };
    for (let round = 0; round < 50; round++) {
      const { id } = await acme.exec("true").enqueued();
      await redis.lpush(takenKey(acmeKey), id);
      const notAfterMs = taken.taken ? taken.deadlineMs : 0;
      const place = { queuedId: id, before: [], notAfterMs };
      const started = { worker: "w", epoch: mine.epoch, attempt: 1, atMs: 0 };
      const steps = [
        () => events.begin({ ...mine, jobId: id }, place, started),
        () => events.cancel(waitingJob({ key: acmeKey, id }), unbegunResult),
      ];
      const inOrder = round % 2 === 0 ? steps : steps.toReversed();
      const saying = [];
      for (const step of inOrder) {
        saying.push(step());
        // A beginning is sent with everything else that its holder says in this tick.
        await new Promise(setImmediate);
      }
      const said = await Promise.all(saying);
      const expected = round % 2 === 0 ? ["begun", "begun"] : ["ended", "finished-before"];
      expect(said).toEqual(expected);
      await events.publish({ ...mine, jobId: id }, [{ type: "finished", result: unbegunResult }]);
      const recorded = await events.read(acmeKey, id, "");
      expect(recorded.filter(({ event }) => event.type === "finished")).toHaveLength(1);
      await redis.lrem(takenKey(acmeKey), 0, id);
    }
  });
});
