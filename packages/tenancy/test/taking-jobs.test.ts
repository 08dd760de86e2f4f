import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Rig } from "./simulation/rig.ts";

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

afterEach(() => {
  expect(rig.rules.violation).toBeUndefined();
});

describe("job that is taken without this tenancy's knowledge", () => {
  test("jobs run in order when the answer to the take at a tenancy's start is lost", async () => {
    for (const id of ["a", "b"]) rig.add(id);
    rig.weather.next("fetch", "answer-lost");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect(rig.started).toEqual(["a", "b"]);
  });

  test("jobs run in order when a take is sent twice", async () => {
    for (const id of ["a", "b", "c"]) rig.add(id);
    rig.weather.next("fetch", "sent-again");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect(rig.started).toEqual(["a", "b", "c"]);
  });

  test("a job whose take was never answered runs before jobs that were taken later", async () => {
    const held = rig.hold("worker-1", { idleMs: 60_000 });
    await rig.time.pass(100);
    rig.add("a");
    rig.queue.take("an answer that was lost", true);
    for (const id of ["b", "c"]) rig.add(id);
    await rig.time.pass(2_000);
    expect(rig.started).toEqual(["a", "b", "c"]);
    held.tenancy.stop();
    await rig.time.pass(500);
  });

  test("a job whose take was never answered runs although no job follows it and another job runs for long", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 20_000, code: 0, chunks: [] }] });
    rig.hold("worker-1");
    await rig.time.pass(800);
    rig.add("a", { session: "s2" });
    rig.queue.take("an answer that was lost", true);
    await rig.time.pass(4_000);
    expect(rig.said("a")).toEqual(["started", "exited"]);
    await rig.time.pass(20_000);
  });
});

describe("job that comes to an idle open sandbox", () => {
  /** A sandbox that has run a job, and a second job in its queue. */
  async function open(options: Parameters<Rig["hold"]>[1] = {}) {
    rig.add("first");
    const held = rig.hold("worker-1", { idleMs: 60_000, ...options });
    while (rig.said("first").at(-1) !== "exited") await rig.time.step();
    await rig.time.pass(20);
    return held;
  }

  async function ended(id: string): Promise<string[]> {
    while (rig.said(id).length === 0 || rig.said(id).at(-1) === "started") await rig.time.pass(50);
    return rig.said(id);
  }

  afterEach(async () => {
    await rig.time.pass(60_000);
  });

  test("a job that comes to an idle open sandbox begins in the step that takes it", async () => {
    await open();
    rig.add("a");
    expect(await ended("a")).toEqual(["started", "exited"]);
    expect(rig.trace.counts.get("begun-at-once")).toBe(1);
  });

  test.each(["answer-lost", "sent-again"] as const)(
    "a job that is taken and begun in one step runs once when the mishap of that call is %s",
    async (mishap) => {
      await open();
      rig.weather.next("fetch", mishap);
      rig.add("a");
      expect(await ended("a")).toEqual(["started", "exited"]);
      expect(rig.started).toEqual(["first", "a"]);
      expect(rig.trace.counts.get("begun-at-once")).toBe(1);
    },
  );

  test("a job that is taken and begun in one step runs in its turn although the call was sent twice", async () => {
    await open();
    rig.weather.next("fetch", "sent-again");
    rig.add("a");
    for (let index = 0; index < 9; index++) rig.add(`b${index}`);
    expect(await ended("b8")).toEqual(["started", "exited"]);
    expect(rig.started.slice(0, 3)).toEqual(["first", "a", "b0"]);
  });

  test("a job that is taken and begun in one step is not lost with the answer when the sandbox is released", async () => {
    const held = await open();
    rig.weather.next("fetch", "answer-lost");
    rig.add("a");
    while (rig.said("a").length === 0) await rig.time.step();
    held.tenancy.yield();
    while (held.end === undefined) await rig.time.step();
    expect(rig.said("a")).toEqual([]);
    rig.hold("worker-2");
    expect(await ended("a")).toEqual(["started", "exited"]);
  });

  test("a job that is taken and begun in one step is not lost when its staged request cannot be read for a moment", async () => {
    await open();
    rig.add("a", {}, { staged: "there" });
    rig.weather.next("load a", "refused", "refused");
    expect(await ended("a")).toEqual(["started", "exited"]);
  });

  test("a job that is taken and begun in one step is not lost when Redis refuses to take its beginning back", async () => {
    const held = await open();
    rig.weather.slowMs = 100;
    rig.weather.next("fetch", "slow-answer");
    rig.add("a");
    while (rig.said("a").length === 0) await rig.time.step();
    held.tenancy.yield();
    rig.weather.redisRefusesUntilMs = rig.time.nowMs + 3_000;
    while (held.end === undefined) await rig.time.step();
    expect(rig.said("a")).toEqual([]);
    rig.hold("worker-2");
    expect(await ended("a")).toEqual(["started", "exited"]);
  });

  test("a job stays in the line when its sandbox is released before the answer to its take arrives", async () => {
    const held = await open();
    rig.weather.slowMs = 100;
    rig.weather.next("fetch", "slow-answer");
    rig.add("a");
    while (rig.said("a").length === 0) await rig.time.step();
    held.tenancy.yield();
    while (held.end === undefined) await rig.time.step();
    expect({ end: held.end, said: rig.said("a"), left: rig.queue.left }).toEqual({
      end: "handed-back",
      said: [],
      left: 1,
    });
    rig.hold("worker-2");
    expect(await ended("a")).toEqual(["started", "exited"]);
  });

  test("a job that is cancelled before the answer to its take arrives never runs", async () => {
    const held = await open();
    rig.weather.slowMs = 100;
    rig.weather.next("fetch", "slow-answer");
    rig.add("a");
    while (rig.said("a").length === 0) await rig.time.step();
    rig.redis.events.requestCancellation("a");
    expect(rig.redis.events.cancel({ key: "ash", jobId: "a", attempt: 1 })).toBe("begun");
    held.tenancy.cancel("a");
    expect(await ended("a")).toEqual(["cancelled"]);
    expect(rig.started).toEqual(["first"]);
  });

  test("a job that began when it was taken and is cancelled while its staged request is read never runs", async () => {
    const held = await open();
    rig.weather.slowMs = 100;
    rig.weather.next("load a", "slow");
    rig.add("a", {}, { staged: "there" });
    while (rig.said("a").length === 0) await rig.time.step();
    // The answer that took it has come, and its request has not.
    await rig.time.pass(50);
    rig.redis.events.requestCancellation("a");
    expect(rig.redis.events.cancel({ key: "ash", jobId: "a", attempt: 1 })).toBe("begun");
    held.tenancy.cancel("a");
    expect(await ended("a")).toEqual(["cancelled"]);
    expect(rig.started).toEqual(["first"]);
  });

  test("a job is not begun in the step that takes it while the worker has no turn for it", async () => {
    const held = await open();
    const turns = [held.turns.takeNow(), held.turns.takeNow()];
    rig.add("a");
    await rig.time.pass(500);
    expect(rig.said("a")).toEqual([]);
    for (const turnOver of turns) turnOver?.();
    expect(await ended("a")).toEqual(["started", "exited"]);
    expect(held.turns.takeNow()).toBeDefined();
    expect(rig.trace.counts.get("begun-at-once")).toBeUndefined();
  });
});
