import { Fault, type Job, redisKeys, type ScheduleInput, scheduleSpec } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { CronRunner } from "../src/schedule/cron-runner.ts";
import { putState, wakeMs } from "../src/schedule/schedule-state.ts";
import { ScheduleStore } from "../src/schedule/schedule-store.ts";

const made = 1_000_000;
const minute = 60_000;
const order = { tenant: "acme", request: { kind: "exec", command: "true" } } as const;

/** A schedule made at a known time, and workers whose clocks the test sets. */
async function fleetOf(redis: Redis, more: Partial<ScheduleInput> = {}) {
  const store = new ScheduleStore(redis);
  const spec = scheduleSpec.parse({ id: "tick", everyMs: minute, order, ...more });
  await store.change("tick", (known) => putState(spec, made, known));
  const ran: string[] = [];
  const ticks: number[] = [];
  const refused: string[] = [];
  const worker = (now: number, enqueue: (job: Job) => Promise<unknown> = async ({ id }) => ran.push(id)) =>
    new CronRunner({
      store,
      schedule: { addTick: async (_, wake) => void ticks.push(wake) },
      enqueue,
      scopeOf: async () => "tenant",
      now: () => now,
      onRefused: (_, message) => refused.push(message),
    });
  return { store, ran, ticks, refused, worker };
}

describe("tick", () => {
  test("a tick that twenty workers run at the same time submits one job, and is followed by the next tick", async ({
    redis,
  }) => {
    const { store, ran, ticks, worker } = await fleetOf(redis.connect());
    const due = made + minute;
    await Promise.all(Array.from({ length: 20 }, () => worker(due).run("tick", due)));
    expect(new Set(ran)).toEqual(new Set([`tick@${due}`]));
    expect(await store.get("tick")).toMatchObject({ runs: 1, nextDueMs: due + minute });
    expect(new Set(ticks)).toEqual(new Set([due + minute]));
  });

  test("a tick that is repeated or late submits nothing twice", async ({ redis }) => {
    const { ran, worker } = await fleetOf(redis.connect());
    const due = made + minute;
    await worker(due).run("tick", due);
    await worker(due + 10).run("tick", due);
    expect(ran).toEqual([`tick@${due}`]);
  });

  test("a tick is run even where this worker's clock is behind the one that promoted it", async ({
    redis,
  }) => {
    const { ran, worker } = await fleetOf(redis.connect());
    await worker(made + minute - 400).run("tick", made + minute);
    expect(ran).toEqual([`tick@${made + minute}`]);
  });

  test("a tick of a schedule that was removed, paused or replaced meanwhile runs nothing", async ({
    redis,
  }) => {
    const { store, ran, worker } = await fleetOf(redis.connect());
    await store.change("tick", (known) => known && { ...known, spec: { ...known.spec, paused: true } });
    await worker(made + minute).run("tick", made + minute);
    await store.change("tick", () => undefined);
    await worker(made + minute).run("tick", made + minute);
    expect(ran).toEqual([]);
  });
});

describe("schedule that this version cannot read", () => {
  test("a schedule that this version cannot read survives its tick unchanged, and is removed only by request", async ({
    redis,
  }) => {
    const client = redis.connect();
    const { store, ran, worker } = await fleetOf(client);
    const newer = JSON.stringify({ ...(await store.get("tick")), ofANewerVersion: true });
    await client.hset(redisKeys.schedules, "tick", newer);
    const due = made + minute;
    await expect(worker(due).run("tick", due)).rejects.toMatchObject({ code: "schedule-unreadable" });
    await worker(due + minute).sweep();
    expect(await client.hget(redisKeys.schedules, "tick")).toBe(newer);
    expect(await client.zscore(redisKeys.schedulesDue, "tick")).toBe(String(due));
    expect(ran).toEqual([]);
    expect(await store.remove("tick")).toBe(true);
    expect(await store.remove("tick")).toBe(false);
    expect(await client.exists(redisKeys.schedules, redisKeys.schedulesDue)).toBe(0);
  });
});

describe("schedule that is changed by many at once", () => {
  test("a schedule that is changed by many at once loses none of the changes", async ({ redis }) => {
    const { store } = await fleetOf(redis.connect());
    const count = () => store.change("tick", (known) => known && { ...known, runs: known.runs + 1 });
    await Promise.all(Array.from({ length: 20 }, count));
    expect((await store.get("tick"))?.runs).toBe(20);
  });
});

describe("worker that dies between two steps", () => {
  const missed = made + 3 * minute + 1_000;

  test("a worker that dies between two steps leaves its decision, and the next one submits only the rest", async ({
    redis,
  }) => {
    const { store, ran, worker } = await fleetOf(redis.connect(), { catchUp: "all", maxRuns: 3 });
    const dying = worker(missed, async ({ id }) => {
      if (ran.length === 1) throw new Error("killed");
      ran.push(id);
    });
    await expect(dying.run("tick", made + minute)).rejects.toThrow("killed");
    expect((await store.get("tick"))?.firing?.dues).toEqual([made + 2 * minute, made + 3 * minute]);
    // Much later: runs that became due since are not added to the decided ones.
    await worker(made + 60 * minute).run("tick", made + minute);
    expect(ran).toEqual([1, 2, 3].map((n) => `tick@${made + n * minute}`));
    expect(await store.get("tick")).toMatchObject({ runs: 3, nextDueMs: null });
  });

  test("the sweep adds the next tick if a worker died before adding it", async ({ redis }) => {
    const { store, ticks, worker } = await fleetOf(redis.connect());
    // Decided and submitted, and then the worker died: the state has the next time, and there is no tick for it.
    const state = await store.get("tick");
    const wake = state && wakeMs(state);
    await worker(made + minute + 1_000).sweep();
    expect(ticks).toEqual([]);
    await worker(made + minute + 3_000).sweep();
    expect(ticks).toEqual([wake]);
  });

  test("the sweep adds the tick again if a worker died while it submitted the due runs", async ({
    redis,
  }) => {
    const { ticks, worker } = await fleetOf(redis.connect());
    const dying = worker(missed - minute, () => Promise.reject(new Error("killed")));
    await expect(dying.run("tick", made + minute)).rejects.toThrow("killed");
    await worker(missed).sweep();
    expect(ticks).toEqual([made + minute]);
  });
});

describe("run that cannot be accepted", () => {
  test("a run that cannot be accepted yet is retried; one that never can be is skipped and holds up no other", async ({
    redis,
  }) => {
    const { store, ran, refused, worker } = await fleetOf(redis.connect());
    const full = new Fault("sandbox-full", { sandboxKey: "acme", waiting: 1, limit: 1 });
    const due = made + minute;
    await expect(worker(due, () => Promise.reject(full)).run("tick", due)).rejects.toThrow(full);
    await worker(due + 5_000).run("tick", due);
    expect(ran).toEqual([`tick@${due}`]);
    const taken = new Fault("job-id-taken", { jobId: "x", sandboxKey: "other" });
    await worker(due + minute, () => Promise.reject(taken)).run("tick", due + minute);
    expect(refused).toEqual([taken.message]);
    expect((await store.get("tick"))?.nextDueMs).toBe(due + 2 * minute);
  });
});
