import { Fault } from "@berth/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deadLetter, Rig } from "./simulation/rig.ts";

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

afterEach(() => {
  expect(rig.rules.violation).toBeUndefined();
});

describe("ends of jobs", () => {
  test("a job ends as lost when the worker fails unexpectedly while carrying it out", async () => {
    rig.add("a", {}, { breaks: true });
    rig.add("b");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect([rig.said("a"), rig.said("b")]).toEqual([
      ["started", "lost"],
      ["started", "exited"],
    ]);
  });

  test("a job ends although Redis refuses to record it for a while", async () => {
    rig.add("a");
    rig.weather.next("finished a", "refused", "refused");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect(rig.said("a")).toEqual(["started", "exited"]);
  });

  test("a job ends as refused when its deadline passes while it waits for a turn", async () => {
    const held = rig.hold("worker-1");
    const { signal } = new AbortController();
    const turns = [await held.turns.take(signal), await held.turns.take(signal)];
    rig.add("a", { deadlineAtMs: 500 });
    await rig.time.pass(900);
    for (const over of turns) over();
    await rig.time.pass(2_000);
    expect({ said: rig.said("a"), started: rig.started }).toEqual({ said: ["refused"], started: [] });
  });

  test("a job is cancelled where it waits, and where it runs", async () => {
    rig.add("a", {}, { commands: [{ runMs: 5_000, code: 0, chunks: [] }] });
    for (const id of ["b", "c"]) rig.add(id);
    const held = rig.hold("worker-1");
    await rig.time.pass(700);
    for (const id of ["b", "a"]) held.tenancy.cancel(id);
    await rig.time.pass(2_000);
    expect(["a", "b", "c"].map((id) => rig.said(id).at(-1))).toEqual(["cancelled", "cancelled", "exited"]);
    expect(rig.started).toEqual(["a", "c"]);
  });

  test("a job that is cancelled while its failed attempt is published does not wait for another attempt", async () => {
    const retry = { attempts: 2, backoffMs: 60_000, jitter: 0 };
    rig.add("a", { retry }, { commands: [{ runMs: 100, code: 1, chunks: ["last words"] }] });
    rig.weather.slowMs = 200;
    rig.weather.next("output a", "slow");
    const held = rig.hold("worker-1");
    while (!rig.trace.counts.has("slow")) await rig.time.step();
    // Its command has ended, and what it wrote is on its way.
    await rig.time.pass(150);
    held.tenancy.cancel("a");
    await rig.time.pass(2_000);
    expect(rig.said("a")).toEqual(["started", "output", "cancelled"]);
  });

  test("a job ends as refused when its sandbox cannot be started and waiting would not help", async () => {
    rig.weather.fault = new Fault("image-missing", { image: "none", detail: "" });
    rig.add("a");
    rig.hold("worker-1");
    await rig.time.pass(2_000);
    expect(rig.said("a")).toEqual(["refused"]);
  });

  test("a job goes to another worker when this one cannot start a sandbox for now", async () => {
    rig.weather.fault = new Fault("engine-unreachable", { address: "here", detail: "" });
    for (const id of ["a", "b"]) rig.add(id);
    const first = rig.hold("worker-1");
    await rig.time.pass(2_000);
    expect(first.end).toBe("no-sandbox");
    rig.weather.fault = undefined;
    rig.hold("worker-2");
    await rig.time.pass(3_000);
    expect(rig.started).toEqual(["a", "b"]);
  });
});

describe("attempt that waits while the end of the one before is still being published", () => {
  test("an attempt has not begun while the end of the one before is still being published", async () => {
    const retry = { attempts: 2, backoffMs: 100, jitter: 0 };
    rig.add("a", { session: "s1", retry }, { commands: [{ runMs: 100, code: 1, chunks: [] }] });
    rig.add("b", { ...deadLetter[0], session: "s2" }, { commands: [{ runMs: 500, code: 1, chunks: [] }] });
    rig.weather.next("retrying a", "refused", "refused", "refused", "refused");
    // A failed completion makes the tenancy read the line again.
    rig.weather.next("complete b", "refused");
    rig.hold("worker-1");
    await rig.time.pass(5_000);
    expect(rig.said("a")).toEqual(["started", "retrying", "started", "exited"]);
  });
});

describe("output of a job", () => {
  test("a job's events are published once and in order, whichever answers are lost", async () => {
    const commands = [{ runMs: 400, code: 0, chunks: ["one ", "two ", "three "] }];
    rig.add("a", {}, { commands, artifact: true });
    rig.weather.next("begin a", "answer-lost");
    rig.weather.next("output a", "answer-lost", "sent-again", "refused");
    rig.weather.next("artifact a", "answer-lost");
    rig.weather.next("finished a", "answer-lost");
    rig.hold("worker-1");
    await rig.time.pass(5_000);
    const text = rig.redis.events.of("a").map((event) => (event.type === "output" ? event.text : ""));
    expect(text.join("")).toBe("one two three ");
    expect(rig.said("a").filter((type) => type !== "output")).toEqual(["started", "artifact", "exited"]);
  });
});

describe("jobs that wait for their session", () => {
  test("jobs that wait for their session do not count as running", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 3_000, code: 0, chunks: [] }] });
    for (let index = 0; index < 20; index++) rig.add(`behind-${index}`, { session: "s1" });
    rig.add("other", { session: "s2" });
    rig.hold("worker-1");
    await rig.time.pass(1_500);
    expect(rig.said("other")).toEqual(["started", "exited"]);
    expect(rig.started.toSorted()).toEqual(["long", "other"]);
    await rig.time.pass(9_000);
  });

  test("jobs that wait for their session do not hide another session, however many they are, and its jobs keep their order", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 8_000, code: 0, chunks: [] }] });
    for (let index = 0; index < 1_000; index++) rig.add(`behind-${index}`, { session: "s1" });
    for (const id of ["a", "b", "c"]) rig.add(id, { session: "chat" });
    const held = rig.hold("worker-1");
    await rig.time.pass(4_000);
    expect(rig.started.filter((id) => id !== "long")).toEqual(["a", "b", "c"]);
    expect(rig.queue.active.length, "taken ahead").toBeLessThanOrEqual(16 + 16);
    held.tenancy.abandon();
    await rig.time.pass(1_000);
  });

  test("jobs that wait for their session do not hide another session when the answer to a take is lost", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 8_000, code: 0, chunks: [] }] });
    for (let index = 0; index < 100; index++) rig.add(`behind-${index}`, { session: "s1" });
    for (const id of ["a", "b"]) rig.add(id, { session: "chat" });
    rig.weather.next("pick a", "answer-lost");
    rig.weather.next("pick b", "sent-again");
    const held = rig.hold("worker-1");
    await rig.time.pass(4_000);
    expect(rig.started.filter((id) => id !== "long")).toEqual(["a", "b"]);
    held.tenancy.abandon();
    await rig.time.pass(1_000);
  });

  test("jobs of a busy session keep their order when a holder dies that had picked another session's job from behind them", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 8_000, code: 0, chunks: [] }] });
    for (let index = 0; index < 30; index++) rig.add(`behind-${index}`, { session: "s1" });
    rig.add("a", { session: "chat", idempotent: true }, { commands: [{ runMs: 900, code: 0, chunks: [] }] });
    rig.add("b", { session: "chat" });
    const first = rig.hold("worker-1");
    while (!rig.started.includes("a")) await rig.time.step();
    first.process.die();
    await rig.time.pass(1_100);
    rig.hold("worker-2");
    await rig.time.pass(20_000);
    const [behind, others] = [true, false].map((isBehind) =>
      rig.started.filter((id) => id !== "long" && id.startsWith("behind") === isBehind),
    );
    expect(others).toEqual(["a", "a", "b"]);
    expect(behind).toEqual(Array.from({ length: 30 }, (_, index) => `behind-${index}`));
  });
});
