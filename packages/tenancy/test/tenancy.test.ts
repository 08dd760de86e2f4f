import { Fault } from "@berth/protocol";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Rig } from "./simulation/rig.ts";

/** A job that becomes a dead letter. Only such a job leaves its queue in a step of its own. */
const deadLetter = [
  { retry: { attempts: 1, backoffMs: 100, jitter: 0 } },
  { commands: [{ runMs: 100, code: 1, chunks: [] }] },
] as const;

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

afterEach(() => {
  expect(rig.rules.violation).toBeUndefined();
});

describe("sandbox with nothing to do", () => {
  test("a sandbox with nothing to do is given up when its idle time is over", async () => {
    const held = rig.hold("worker-1", { idleMs: 500 });
    await rig.time.pass(450);
    expect(held.end).toBeUndefined();
    await rig.time.pass(200);
    expect(held.end).toBe("released");
    expect(rig.redis.leases.isLive("ash")).toBe(false);
  });

  test("a sandbox with nothing to do is given up although the completing of its last job failed", async () => {
    rig.add("a", ...deadLetter);
    rig.weather.next("complete a", "refused");
    const held = rig.hold("worker-1");
    await rig.time.pass(4_000);
    expect({ end: held.end, left: rig.queue.left, said: rig.said("a") }).toEqual({
      end: "released",
      left: 0,
      said: ["started", "exited"],
    });
  });

  test("a sandbox with nothing to do is given up with its tenant paused, at the next renewal", async () => {
    const held = rig.hold("worker-1", { idleMs: 0 });
    rig.redis.leases.paused.add("ash");
    await rig.time.pass(600);
    expect(held.end).toBe("released");
  });
});

describe("a sandbox on storage that other hosts see", () => {
  test.each([
    ["asked for", { idleMs: 60_000 }],
    ["idle for long", { idleMs: 700 }],
  ])("has no container any more when its lease is released, %s", async (_, options) => {
    rig.add("a");
    const held = rig.hold("worker-1", { ...options, closesFirst: true });
    await rig.time.pass(1_000);
    expect([...held.host.keys]).toEqual(["ash"]);
    if (options.idleMs > 1_000) held.tenancy.yield();
    while (rig.redis.leases.isLive("ash")) await rig.time.step();
    expect([...held.host.keys]).toEqual([]);
    await rig.time.pass(1_000);
    expect(held.end).toBe("released");
  });
});

describe("a sandbox whose container is parked", () => {
  test.each([
    ["asked for", { idleMs: 60_000 }],
    ["idle for long", { idleMs: 700 }],
  ])("is so before its lease is released, %s", async (_, options) => {
    rig.add("a");
    const held = rig.hold("worker-1", { ...options, parks: true });
    await rig.time.pass(1_000);
    expect(held.host.isParked("ash")).toBe(false);
    if (options.idleMs > 1_000) held.tenancy.yield();
    while (rig.redis.leases.isLive("ash")) await rig.time.step();
    expect([...held.host.keys]).toEqual(["ash"]);
    expect(held.host.isParked("ash")).toBe(true);
    await rig.time.pass(1_000);
    expect(held.end).toBe("released");
  });
});

describe("sandbox that a dead life of its worker left", () => {
  test("a sandbox that a dead life of its worker left is not given up before it is open: what that life started ends then", async () => {
    const held = rig.hold("worker-1", { idleMs: 1 });
    let open = false;
    const adopting = held.tenancy.adopt().then(() => {
      open = true;
    });
    held.tenancy.yield();
    while (!open) {
      expect(rig.redis.leases.isLive("ash")).toBe(true);
      await rig.time.pass(1);
    }
    await adopting;
    await rig.time.pass(1_100);
    expect(held.end).toBe("released");
  });

  test("a sandbox that a dead life of its worker left and cannot be opened is held until that life's lease would be over", async () => {
    rig.weather.fault = new Fault("engine-unreachable", { address: "unix:///nowhere", detail: "simulated" });
    const held = rig.hold("worker-1", { idleMs: 1 });
    void held.tenancy.adopt();
    await rig.time.pass(950);
    expect(held.end).toBeUndefined();
    await rig.time.pass(1_200);
    expect(held.end).toBe("released");
  });
});

describe("job that was taken without this tenancy's knowledge", () => {
  test("a job that was taken without this tenancy's knowledge runs before those behind it when the answer that brought it was lost", async () => {
    for (const id of ["a", "b"]) rig.add(id);
    rig.weather.next("fetch", "answer-lost");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect(rig.started).toEqual(["a", "b"]);
  });

  test("a job that was taken without this tenancy's knowledge runs before those behind it when the call was sent twice", async () => {
    for (const id of ["a", "b", "c"]) rig.add(id);
    rig.weather.next("fetch", "sent-again");
    rig.hold("worker-1");
    await rig.time.pass(3_000);
    expect(rig.started).toEqual(["a", "b", "c"]);
  });

  test("a job that was taken without this tenancy's knowledge runs before those behind it when the answer to taking it was lost", async () => {
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

  test("a job that was taken without this tenancy's knowledge runs although nothing comes behind it and another job runs for long", async () => {
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

describe("job that comes to an open sandbox where nothing else is to be done", () => {
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

  test("a job that comes to an open sandbox where nothing else is to be done begins in the step that takes it", async () => {
    await open();
    rig.add("a");
    expect(await ended("a")).toEqual(["started", "exited"]);
    expect(rig.trace.counts.get("begun-at-once")).toBe(1);
  });

  test.each(["answer-lost", "sent-again"] as const)("runs once although that call was %s", async (mishap) => {
    await open();
    rig.weather.next("fetch", mishap);
    rig.add("a");
    expect(await ended("a")).toEqual(["started", "exited"]);
    expect(rig.started).toEqual(["first", "a"]);
    expect(rig.trace.counts.get("begun-at-once")).toBe(1);
  });

  test("a job that comes to an open sandbox where nothing else is to be done runs in its turn although that call was sent again and took another", async () => {
    await open();
    rig.weather.next("fetch", "sent-again");
    rig.add("a");
    for (let index = 0; index < 9; index++) rig.add(`b${index}`);
    expect(await ended("b8")).toEqual(["started", "exited"]);
    expect(rig.started.slice(0, 3)).toEqual(["first", "a", "b0"]);
  });

  test("a job that comes to an open sandbox where nothing else is to be done is not lost when the answer is, and the sandbox is given up", async () => {
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

  test("a job that comes to an open sandbox where nothing else is to be done is not lost when its staged request cannot be read for a moment", async () => {
    await open();
    rig.add("a", {}, { staged: "there" });
    rig.weather.next("load a", "refused", "refused");
    expect(await ended("a")).toEqual(["started", "exited"]);
  });

  test("a job that comes to an open sandbox where nothing else is to be done is not lost when Redis refuses to take its beginning back", async () => {
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

  test("a job that comes to an open sandbox where nothing else is to be done stays in line when the sandbox is to be given up before the answer comes", async () => {
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

  test("a job that comes to an open sandbox where nothing else is to be done and is cancelled before the answer comes never runs", async () => {
    const held = await open();
    rig.weather.slowMs = 100;
    rig.weather.next("fetch", "slow-answer");
    rig.add("a");
    while (rig.said("a").length === 0) await rig.time.step();
    rig.redis.events.wishCancelled("a");
    expect(rig.redis.events.cancel({ key: "ash", jobId: "a", attempt: 1 })).toBe("begun");
    held.tenancy.cancel("a");
    expect(await ended("a")).toEqual(["cancelled"]);
    expect(rig.started).toEqual(["first"]);
  });

  test("a job that comes to an open sandbox where nothing else is to be done does not begin so while the worker has no turn for it", async () => {
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

describe("what a dead holder left", () => {
  async function leave(): Promise<void> {
    const held = rig.hold("worker-1");
    await rig.time.pass(650);
    held.process.die();
    await rig.time.pass(1_100);
  }

  test("what a dead holder left runs again if it is safe to repeat, and is lost if not; what had not begun keeps its place", async () => {
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

  test("what a dead holder left does not run again because its request could not be read for a moment", async () => {
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

  test("what a dead holder left stays in order when it was handed back", async () => {
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

  test("a job whose records have expired and that began is not run a second time", async () => {
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

  test("a job whose records have expired and whose end was published leaves the queue, without another end", async () => {
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

  test("a job whose records have expired and that was cancelled far behind others never runs", async () => {
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
  test("a job that never began is run by the next holder when Redis hears of its beginning too late", async () => {
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

  test("a job that never began is run by its worker when that slept between telling of it and starting it", async () => {
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

describe("Redis that refuses to write for many leases", () => {
  test("a Redis that refuses to write for many leases fences no worker, ends nothing that runs, and gets every end afterwards", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 12_000, code: 0, chunks: ["x"] }] });
    rig.add("ends", { session: "s2" }, { commands: [{ runMs: 3_000, code: 0, chunks: [] }] });
    const held = rig.hold("worker-1");
    await rig.time.pass(800);
    rig.weather.redisRefusesUntilMs = rig.time.nowMs + 8_000;
    await rig.time.pass(8_000);
    expect(rig.redis.leases.isLive("ash"), "by Redis' clock it ran out").toBe(false);
    expect(rig.redis.leases.take("ash", { worker: "worker-2", instance: "b" }, 1_000)).toBeUndefined();
    await rig.time.pass(1_000);
    expect(rig.said("ends").at(-1)).toBe("exited");
    await rig.time.pass(4_000);
    expect({ end: held.end, long: rig.said("long").at(-1), started: rig.started.toSorted() }).toEqual({
      end: "released",
      long: "exited",
      started: ["ends", "long"],
    });
  });
});

describe("holder whose time is over", () => {
  test("a holder whose time is over takes nothing more from the queue", async () => {
    const first = rig.hold("worker-1", { idleMs: 0 });
    await rig.time.pass(100);
    rig.weather.slowMs = 5_000;
    rig.weather.next("renew", "slow");
    await rig.time.pass(1_300);
    rig.hold("worker-2", { idleMs: 0 });
    await rig.time.pass(10);
    rig.add("a");
    await rig.time.pass(700);
    expect({ end: first.end, said: rig.said("a") }).toEqual({ end: "fenced", said: ["started", "exited"] });
  });

  test("a holder whose time is over starts no command, even if the answer to its question comes before its timers", async () => {
    rig.add("a");
    const first = rig.hold("worker-1");
    while (rig.said("a").length === 0) await rig.time.step();
    first.process.freeze();
    await rig.time.pass(1_200);
    rig.hold("worker-2");
    await rig.time.pass(10);
    first.process.thaw(true);
    await rig.time.pass(2_000);
    expect({ end: first.end, started: rig.started, said: rig.said("a") }).toEqual({
      end: "fenced",
      started: [],
      said: ["started", "lost"],
    });
  });

  test("a holder whose time is over is one that has waited for a job for three leases: no other sandbox would get a turn", async () => {
    rig.weather.deaf = true;
    const first = rig.hold("worker-1", { idleMs: 0 });
    await rig.time.pass(2_900);
    expect(first.end).toBeUndefined();
    await rig.time.pass(600);
    expect(first.end).toBe("fenced");
  });

  test("a holder whose time is over gives the lease up as soon as Redis is back, whatever Redis carries out of it late", async () => {
    const first = rig.hold("worker-1", { idleMs: 0 });
    await rig.time.pass(100);
    rig.weather.redisAwayUntilMs = rig.time.nowMs + 2_500;
    await rig.time.pass(2_600);
    expect({ end: first.end, isLive: rig.redis.leases.isLive("ash") }).toEqual({
      end: "fenced",
      isLive: false,
    });
  });

  test("a holder whose time is over counts from when it asked for the lease, not from when the answer came", async () => {
    rig.hold("worker-1", { idleMs: 0, answeredAfterMs: 700 });
    rig.weather.next("renew", "refused");
    await rig.time.pass(120);
    expect(rig.trace.counts.get("tenancy.fenced")).toBe(1);
  });
});

describe("ends of jobs", () => {
  test("a job ends as lost when carrying it out fails in an unforeseen way", async () => {
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

  test("a job ends as refused when there is no sandbox and waiting would not help", async () => {
    rig.weather.fault = new Fault("image-missing", { image: "none", detail: "" });
    rig.add("a");
    rig.hold("worker-1");
    await rig.time.pass(2_000);
    expect(rig.said("a")).toEqual(["refused"]);
  });

  test("a job goes to another worker when this one cannot have a sandbox for now", async () => {
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

describe("worker that stops", () => {
  test("a worker that stops leaves what is safe to repeat to the next, and ends the rest as cancelled", async () => {
    const long = { commands: [{ runMs: 900, code: 0, chunks: [] }] };
    rig.add("a", { session: "s1" }, long);
    rig.add("b", { session: "s2", idempotent: true }, long);
    const first = rig.hold("worker-1");
    await rig.time.pass(900);
    first.tenancy.abandon();
    await rig.time.pass(300);
    expect({ end: first.end, a: rig.said("a"), b: rig.said("b") }).toEqual({
      end: "handed-back",
      a: ["started", "cancelled"],
      b: ["started"],
    });
    rig.hold("worker-2");
    await rig.time.pass(4_000);
    expect(rig.said("b")).toEqual(["started", "started", "exited"]);
  });
});

describe("attempt that waits while the end of the one before is still being published", () => {
  test("an attempt that waits while the end of the one before is still being published has not begun, whatever was said of that one", async () => {
    const retry = { attempts: 2, backoffMs: 100, jitter: 0 };
    rig.add("a", { session: "s1", retry }, { commands: [{ runMs: 100, code: 1, chunks: [] }] });
    rig.add("b", { ...deadLetter[0], session: "s2" }, { commands: [{ runMs: 500, code: 1, chunks: [] }] });
    rig.weather.next("retrying a", "refused", "refused", "refused", "refused");
    // Something is not as it was thought, so everything that was taken is looked at.
    rig.weather.next("complete b", "refused");
    rig.hold("worker-1");
    await rig.time.pass(5_000);
    expect(rig.said("a")).toEqual(["started", "retrying", "started", "exited"]);
  });
});

describe("what a job says", () => {
  test("what a job says is said once and in order, whatever answers are lost", async () => {
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

describe("jobs that wait behind their session", () => {
  test("jobs that wait behind their session take none of the places that run", async () => {
    rig.add("long", { session: "s1" }, { commands: [{ runMs: 3_000, code: 0, chunks: [] }] });
    for (let index = 0; index < 20; index++) rig.add(`behind-${index}`, { session: "s1" });
    rig.add("other", { session: "s2" });
    rig.hold("worker-1");
    await rig.time.pass(1_500);
    expect(rig.said("other")).toEqual(["started", "exited"]);
    expect(rig.started.toSorted()).toEqual(["long", "other"]);
    await rig.time.pass(9_000);
  });

  test("jobs that wait behind their session hide no other session, however many they are, and its jobs keep their order", async () => {
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

  test("jobs that wait behind their session hide no other session when the answer to taking its job was lost, or the call was sent twice", async () => {
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

  test("jobs that wait behind their session stay in order behind another session's job when a holder that took that one dies", async () => {
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
