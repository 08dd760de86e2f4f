import type { Berth, ScheduleView } from "@berth/client";
import { JobEvents } from "@berth/ledger";
import { fleetQueuePrefix } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type TestFleet, test } from "../support/fleet.ts";

const append = (line: string) => ({ kind: "exec" as const, command: `echo ${line} >> ledger` });

async function ledgerOf(berth: Berth, tenant: string): Promise<string[]> {
  const value = await berth.tenant(tenant).exec("cat ledger 2>/dev/null");
  return (value.stdout ?? "").split("\n").filter((line) => line !== "");
}

/** Ids of the jobs of a schedule that have ended, in order. */
async function endedRuns(fleet: TestFleet, schedule: string): Promise<string[]> {
  const results = await fleet.redis.connect().xrange("berth:results", "-", "+");
  return results.map(([, fields]) => fields[1] ?? "").filter((id) => id.startsWith(`${schedule}@`));
}

describe("delayed job", () => {
  test("a delayed job runs once when it is due, by one of two workers, and is known meanwhile", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    await fleet.worker("worker-2");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const ordered = Date.now();
    const job = await acme.exec("echo ran >> ledger; cat ledger", { delayMs: 1_500 }).enqueued();
    expect(await berth.why(job.id)).toMatchObject({ state: "scheduled" });
    expect((await berth.job(job.id))?.key).toBe("acme");
    expect((await job.result).value.stdout).toBe("ran\n");
    expect(Date.now() - ordered).toBeGreaterThanOrEqual(1_500);
    const other = await acme.exec("cat ledger", { runAtMs: Date.now() + 300 });
    expect(other.stdout).toBe("ran\n");
    expect(await berth.why(job.id)).toMatchObject({ state: "finished" });
  });

  test("a delayed job ordered again under its id runs once", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const [one, two] = [fleet.client().tenant("acme"), fleet.client().tenant("acme")];
    const more = { id: "later", delayMs: 700 };
    const command = "echo ran >> ledger; cat ledger";
    const jobs = [one.exec(command, more), two.exec(command, more)];
    const results = [...(await Promise.all(jobs)), await two.exec(command, more)];
    expect(results.map(({ stdout }) => stdout)).toEqual(["ran\n", "ran\n", "ran\n"]);
  });

  test("a delayed job accepted while no worker is there runs when one comes", async ({ fleet }) => {
    const job = fleet.client().tenant("acme").exec("echo late", { delayMs: 50 });
    await job.enqueued();
    await fleet.worker("worker-1");
    expect((await job).stdout).toBe("late\n");
  });

  test("a delayed job is cancelled at once, long before it is due, with one terminal record", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const job = await fleet.client().tenant("acme").exec("echo never", { delayMs: 3_600_000 }).enqueued();
    await job.cancel();
    expect((await job.result).outcome).toMatchObject({ kind: "cancelled" });
    const events = await new JobEvents(fleet.redis.connect()).read(job.key, job.id, "");
    expect(events.map(({ event }) => event.type)).toEqual(["finished"]);
  });

  test("a delayed job with a request too large for the queue runs with all of it", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    await acme.write("big", "x".repeat(600_000), { delayMs: 300 });
    expect((await acme.exec("wc -c < big")).stdout?.trim()).toBe("600000");
  });

  test("a delayed job that can no longer be accepted when it is due ends as refused, with one terminal record", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const acme = berth.tenant("acme");
    const job = await acme.exec("true", { delayMs: 1_500, pool: "gpu" }).enqueued();
    // The first job in its queue decides the pool.
    await acme.exec("true");
    expect((await job.result).outcome).toMatchObject({ kind: "refused", code: "wrong-pool" });
    const recorded = await new JobEvents(fleet.redis.connect()).read(job.key, job.id, "");
    expect(recorded.map(({ event }) => event.type)).toEqual(["finished"]);
    const redis = fleet.redis.connect();
    await expect.poll(() => redis.exists(`${fleetQueuePrefix}:schedule:${job.id}`)).toBe(0);
    await expect.poll(() => berth.deadLetters.list()).toMatchObject([{ jobId: job.id, reason: "fault" }]);
  });

  test("a delayed job with an impossible time is refused at the client", async ({ fleet }) => {
    const acme = fleet.client().tenant("acme");
    await expect(acme.exec("true", { delayMs: 5, runAtMs: 5 })).rejects.toThrow(/delayMs or runAtMs/);
    await expect(acme.exec("true", { delayMs: -1 })).rejects.toThrow(/delayMs/);
  });
});

/** Workers that start, die and come back: minutes on a loaded machine. */
const long = { timeout: 180_000 };

describe("schedule", long, () => {
  test("a schedule runs its job at each of its times, once, with two workers", async ({ fleet }) => {
    await fleet.worker("worker-1");
    await fleet.worker("worker-2");
    const berth = fleet.client();
    await berth.schedules.put({
      id: "beat",
      everyMs: 500,
      maxRuns: 4,
      order: { tenant: "acme", request: append("beat") },
    });
    await expect.poll(() => endedRuns(fleet, "beat"), { timeout: 30_000 }).toHaveLength(4);
    expect(await ledgerOf(berth, "acme")).toEqual(["beat", "beat", "beat", "beat"]);
    const view = (await berth.schedules.get("beat")) as ScheduleView;
    expect(view).toMatchObject({
      runs: 4,
      nextDueMs: undefined,
      lastJobId: (await endedRuns(fleet, "beat"))[3],
    });
    const times = (await endedRuns(fleet, "beat")).map((id) => Number(id.slice("beat-".length)));
    expect(times.map((time) => time - (times[0] ?? 0))).toEqual([0, 500, 1_000, 1_500]);
  });

  test("a schedule by cron is due by its time zone's clock, and reports the next time", async ({ fleet }) => {
    const { schedules } = fleet.client();
    const view = await schedules.put({
      id: "nightly",
      cron: "30 2 * * *",
      timeZone: "Europe/Berlin",
      order: { tenant: "acme", request: append("night") },
    });
    const clock = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", timeStyle: "short" });
    expect(["02:30", "03:30"]).toContain(clock.format(view.nextDueMs));
    expect((await schedules.list()).map(({ id }) => id)).toEqual(["nightly"]);
    expect(await schedules.remove("nightly")).toBe(true);
    expect(await schedules.remove("nightly")).toBe(false);
    expect(await schedules.list()).toEqual([]);
  });

  test("a schedule that cannot be read is refused, naming every problem", async ({ fleet }) => {
    const { schedules } = fleet.client();
    const order = { tenant: "acme", request: append("x") };
    await expect(schedules.put({ id: "x", cron: "99 * * * *", order })).rejects.toThrow(
      /invalid schedule: cron/,
    );
    await expect(
      schedules.put({ id: "x", everyMs: 1, timeZone: "Nowhere", order: { ...order, tenant: "A " } }),
    ).rejects.toThrow(/everyMs.*timeZone.*tenant/);
  });

  test("a paused schedule runs nothing; resumed, it catches up by its policy", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const put = (catchUp: "skip" | "once" | "all") =>
      berth.schedules.put({
        id: catchUp,
        everyMs: 1_000,
        catchUp,
        paused: true,
        order: { tenant: "acme", request: append(catchUp) },
      });
    const made = (await Promise.all([put("skip"), put("once"), put("all")])).map(
      ({ nextDueMs = 0 }) => nextDueMs,
    );
    await expect.poll(() => Date.now()).toBeGreaterThan(Math.max(...made) + 3_200);
    expect(await endedRuns(fleet, "all")).toEqual([]);
    const resumedMs = Date.now();
    for (const id of ["skip", "once", "all"]) expect(await berth.schedules.resume(id)).toBe(true);
    const dues = async (id: string) =>
      (await endedRuns(fleet, id))
        .map((run) => Number(run.slice(id.length + 1)))
        .filter((due) => due < resumedMs);
    await expect.poll(async () => (await dues("all")).length).toBeGreaterThanOrEqual(4);
    await expect.poll(async () => (await dues("once")).length).toBe(1);
    await expect.poll(async () => (await endedRuns(fleet, "skip")).length).toBeGreaterThan(0);
    expect(await dues("skip")).toEqual([]);
    for (const id of ["skip", "once", "all"]) await berth.schedules.remove(id);
    expect(await berth.schedules.pause("gone")).toBe(false);
  });

  test("a schedule catches up after Redis and every worker were away", async ({ fleet }) => {
    const first = await fleet.worker("worker-1");
    const berth = fleet.client();
    const put = (catchUp: "once" | "all") =>
      berth.schedules.put({
        id: catchUp,
        everyMs: 1_000,
        maxRuns: 6,
        catchUp,
        order: { tenant: "acme", request: append(catchUp) },
      });
    await Promise.all([put("once"), put("all")]);
    await expect.poll(async () => (await endedRuns(fleet, "all")).length).toBeGreaterThan(0);
    first.signal("SIGKILL");
    await first.ended();
    await fleet.redis.kill();
    const awayMs = Date.now();
    await expect.poll(() => Date.now()).toBeGreaterThan(awayMs + 3_500);
    await fleet.redis.start();
    await fleet.worker("worker-2");
    await expect.poll(() => endedRuns(fleet, "all"), { timeout: 40_000 }).toHaveLength(6);
    const all = (await endedRuns(fleet, "all")).map((id) => Number(id.slice("all-".length)));
    expect(all.map((due) => due - (all[0] ?? 0))).toEqual([0, 1_000, 2_000, 3_000, 4_000, 5_000]);
    await expect.poll(() => endedRuns(fleet, "once"), { timeout: 40_000 }).toHaveLength(6);
    const once = (await endedRuns(fleet, "once")).map((id) => Number(id.slice("once-".length)));
    const missed = once.filter((due) => due > awayMs && due < awayMs + 3_000);
    expect(missed.length).toBeLessThanOrEqual(1);
    expect(new Set(once).size).toBe(6);
  });

  test("a schedule whose workers are killed one after the other misses nothing and runs nothing twice", async ({
    fleet,
  }) => {
    const berth = fleet.client();
    await fleet.worker("steady", { BERTH_LEASE_MS: "3000" });
    const victims = [await fleet.worker("victim-1"), await fleet.worker("victim-2")];
    const order = { tenant: "acme", request: append("hard"), idempotent: true };
    await berth.schedules.put({ id: "hard", everyMs: 500, catchUp: "all", order });
    const ended = async () => (await endedRuns(fleet, "hard")).length;
    for (const victim of victims) {
      const before = await ended();
      await expect.poll(ended, { timeout: 40_000 }).toBeGreaterThan(before + 1);
      victim.signal("SIGKILL");
      await victim.ended();
    }
    const last = await ended();
    await expect.poll(ended, { timeout: 40_000 }).toBeGreaterThan(last + 1);
    await berth.schedules.pause("hard");
    await expect
      .poll(async () => (await berth.schedules.get("hard"))?.runs === (await ended()), { timeout: 40_000 })
      .toBe(true);
    const dues = (await endedRuns(fleet, "hard")).map((id) => Number(id.slice("hard-".length))).sort();
    expect(dues).toEqual(dues.map((_, index) => (dues[0] ?? 0) + index * 500));
  });
});
