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

describe("sandbox with nothing to do", () => {
  test("a sandbox with nothing to do is given up when its idle time is over", async () => {
    const held = rig.hold("worker-1", { idleMs: 500 });
    await rig.time.pass(450);
    expect(held.end).toBeUndefined();
    await rig.time.pass(200);
    expect(held.end).toBe("released");
    expect(rig.redis.leases.isLive("ash")).toBe(false);
  });

  test("an idle sandbox is given up even if completing its last job failed", async () => {
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

  test("an idle sandbox of a paused tenant is given up at the next renewal", async () => {
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
  ])("a sandbox on shared storage has no container when its lease is released, %s", async (_, options) => {
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
  ])("a container is parked before its sandbox's lease is released, %s", async (_, options) => {
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

describe("sandbox that a dead process of its worker left", () => {
  test("a sandbox of the worker's dead predecessor is held until it is open, because opening ends what still runs", async () => {
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

  test("a sandbox of a dead predecessor that cannot be opened is held until the predecessor's lease is over", async () => {
    rig.weather.fault = new Fault("engine-unreachable", { address: "unix:///nowhere", detail: "simulated" });
    const held = rig.hold("worker-1", { idleMs: 1 });
    void held.tenancy.adopt();
    await rig.time.pass(950);
    expect(held.end).toBeUndefined();
    await rig.time.pass(1_200);
    expect(held.end).toBe("released");
  });
});
