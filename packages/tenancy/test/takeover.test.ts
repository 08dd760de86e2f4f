import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deadLetter, Rig } from "./simulation/rig.ts";

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

afterEach(() => {
  expect(rig.rules.violation).toBeUndefined();
});

describe("jobs of a dead holder", () => {
  async function leave(): Promise<void> {
    const held = rig.hold("worker-1");
    await rig.time.pass(650);
    held.process.die();
    await rig.time.pass(1_100);
  }

  test("a dead holder's job runs again if it is safe to repeat and is lost otherwise; jobs that had not begun keep their order", async () => {
    const long = { commands: [{ runMs: 900, code: 0, chunks: [] }] };
    rig.add("a", { session: "s1" }, long);
    rig.add("b", { session: "s2", idempotent: true }, long);
    for (const id of ["c", "d"]) rig.add(id, { session: "s2" });
    await leave();
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect(["a", "b", "c", "d"].map((id) => rig.said(id).at(-1))).toEqual([
      "lost",
      "exited",
      "exited",
      "exited",
    ]);
    expect(rig.started.filter((id) => id !== "a")).toEqual(["b", "b", "c", "d"]);
    expect(rig.started.filter((id) => id === "a")).toEqual(["a"]);
  });

  test("a dead holder's job does not run again because its request cannot be read for a moment", async () => {
    rig.add("a", {}, { staged: "there", commands: [{ runMs: 900, code: 0, chunks: [] }] });
    await leave();
    rig.weather.next("load a", "refused");
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect({ started: rig.started, said: rig.said("a") }).toEqual({
      started: ["a"],
      said: ["started", "lost"],
    });
  });

  test("jobs that a holder handed back keep their order", async () => {
    rig.add("long", {}, { commands: [{ runMs: 300, code: 0, chunks: [] }] });
    for (const id of ["b", "c", "d"]) rig.add(id);
    const first = rig.hold("worker-1");
    await rig.time.pass(700);
    first.tenancy.yield();
    await rig.time.pass(600);
    expect(first.end).toBe("handed-back");
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect(rig.started).toEqual(["long", "b", "c", "d"]);
  });
});

describe("job whose records have expired", () => {
  const long = { commands: [{ runMs: 900, code: 0, chunks: [] }] };

  test("a job that began and whose records have expired is not run a second time", async () => {
    rig.add("a", {}, long);
    const first = rig.hold("worker-1");
    await rig.time.pass(650);
    first.process.die();
    await rig.time.pass(1_100);
    rig.redis.events.lose("a");
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect({ started: rig.started, said: rig.said("a") }).toEqual({
      started: ["a"],
      said: ["started", "lost"],
    });
  });

  test("a job that ended and whose records have expired leaves the queue without another end", async () => {
    rig.add("a", deadLetter[0], { ...deadLetter[1], staged: "there" });
    rig.weather.next("complete a", ...Array.from({ length: 20 }, () => "refused" as const));
    const first = rig.hold("worker-1", { idleMs: 60_000 });
    await rig.time.pass(1_200);
    first.process.die();
    await rig.time.pass(1_100);
    rig.redis.events.expire();
    rig.weather.next("complete a");
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect({ started: rig.started, said: rig.said("a"), left: rig.queue.left }).toEqual({
      started: ["a"],
      said: ["started", "exited"],
      left: 0,
    });
  });

  test("a job that was cancelled far back in the queue and whose records have expired never runs", async () => {
    rig.add("a");
    rig.redis.events.cancel({ key: "ash", jobId: "a", attempt: 1 }, true);
    rig.redis.events.expire();
    rig.hold("worker-1");
    await rig.time.pass(4_000);
    expect({ started: rig.started, said: rig.said("a"), left: rig.queue.left }).toEqual({
      started: [],
      said: ["cancelled"],
      left: 0,
    });
  });
});

describe("job that never began", () => {
  test("a job whose beginning reaches Redis too late is run by the next holder", async () => {
    rig.add("a");
    const first = rig.hold("worker-1");
    while (rig.queue.active.length === 0) await rig.time.step();
    rig.weather.redisAwayUntilMs = rig.time.nowMs + 2_500;
    await rig.time.pass(2_600);
    expect({ end: first.end, said: rig.said("a") }).toEqual({ end: "fenced", said: [] });
    await rig.time.pass(1_000);
    rig.hold("worker-2");
    await rig.time.pass(3_000);
    expect({ started: rig.started, said: rig.said("a") }).toEqual({
      started: ["a"],
      said: ["started", "exited"],
    });
  });

  test("a job runs when its worker slept between recording its beginning and starting it", async () => {
    rig.add("a");
    const first = rig.hold("worker-1");
    while (rig.said("a").length === 0) await rig.time.step();
    first.process.freeze();
    await rig.time.pass(1_200);
    first.process.thaw(true);
    await rig.time.pass(100);
    expect(rig.said("a")).toEqual([]);
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect({ started: rig.started, said: rig.said("a") }).toEqual({
      started: ["a"],
      said: ["started", "exited"],
    });
  });
});
