import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Rig } from "./simulation/rig.ts";

let rig: Rig;

beforeEach(() => {
  rig = new Rig();
});

afterEach(() => {
  expect(rig.rules.violation).toBeUndefined();
});

describe("Redis that refuses to write for many leases", () => {
  test("no worker is fenced while Redis refuses writes for many leases, and every end is published afterwards", async () => {
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

describe("holder whose lease is over", () => {
  test("a holder whose lease is over takes no more jobs from the queue", async () => {
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

  test("a holder whose lease is over starts no command, even if Redis' answer arrives before its timers fire", async () => {
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

  test("a holder whose wait for a job hangs for three leases loses its lease", async () => {
    rig.weather.isHanging = true;
    const first = rig.hold("worker-1", { idleMs: 0 });
    await rig.time.pass(2_900);
    expect(first.end).toBeUndefined();
    await rig.time.pass(600);
    expect(first.end).toBe("fenced");
  });

  test("a holder whose lease is over releases it when Redis is back, even if Redis carries out its renewals late", async () => {
    const first = rig.hold("worker-1", { idleMs: 0 });
    await rig.time.pass(100);
    rig.weather.redisAwayUntilMs = rig.time.nowMs + 2_500;
    await rig.time.pass(2_600);
    expect({ end: first.end, isLive: rig.redis.leases.isLive("ash") }).toEqual({
      end: "fenced",
      isLive: false,
    });
  });

  test("a holder counts its lease from its request, not from the answer", async () => {
    rig.hold("worker-1", { idleMs: 0, answeredAfterMs: 700 });
    rig.weather.next("renew", "refused");
    await rig.time.pass(120);
    expect(rig.trace.counts.get("tenancy.fenced")).toBe(1);
  });
});

describe("worker that stops", () => {
  test("a worker that stops leaves jobs that are safe to repeat to the next holder, and ends the others as cancelled", async () => {
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
