import { sandboxKey } from "@berth/protocol";
import type { ParkedSandbox } from "@berth/sandbox";
import { describe, expect, test } from "vitest";
import { systemClock } from "../src/clock.ts";
import { overLimits, Parking } from "../src/parking.ts";

const roomy = { count: 10, memoryBytes: 1_000, ageMs: 0 };

function parked(...memory: number[]): ParkedSandbox[] {
  return memory.map((memoryBytes, index) => ({
    key: sandboxKey.parse(`t${index}`),
    worker: "worker-1",
    containerId: `c${index}`,
    parkedAtMs: 1_000 + index,
    memoryBytes,
  }));
}

const keys = (list: readonly ParkedSandbox[]) => list.map(({ key }) => key);

describe("parked containers", () => {
  test("parked containers within every bound all stay", () => {
    expect(overLimits(parked(100, 100, 100), roomy, 5_000)).toEqual([]);
  });

  test("of too many parked containers the oldest are removed, and no more than necessary", () => {
    expect(keys(overLimits(parked(1, 1, 1, 1), { ...roomy, count: 2 }, 5_000))).toEqual(["t0", "t1"]);
  });

  test("of parked containers with too much memory the oldest are removed until the rest fits", () => {
    expect(keys(overLimits(parked(600, 300, 500, 100), roomy, 5_000))).toEqual(["t0"]);
  });

  test("parked containers that are too old are removed, however few they are", () => {
    expect(keys(overLimits(parked(1, 1, 1), { ...roomy, ageMs: 4_000 }, 5_001))).toEqual(["t0", "t1"]);
  });

  test("a worker that stops removes its own parked containers, except one that cannot be removed", async () => {
    const here = new Map(parked(...Array(20).fill(1)).map((one) => [one.key, one]));
    const [stuck, other] = [sandboxKey.parse("t3"), sandboxKey.parse("t7")];
    for (const one of here.values()) if (one.key === other) here.set(other, { ...one, worker: "worker-2" });
    let removing = 0;
    let removingMost = 0;
    const together = Promise.withResolvers<void>();
    const driver = {
      parked: async () => [...here.values()],
      evict: async (key: ParkedSandbox["key"]) => {
        removingMost = Math.max(removingMost, ++removing);
        if (removing === 4) together.resolve();
        await together.promise;
        removing--;
        if (key === stuck) throw new Error("the engine does not let it go");
        return here.delete(key);
      },
    };
    const limits = { ...roomy, count: 100 };
    const parking = new Parking({
      driver,
      worker: "worker-1",
      limits,
      clock: systemClock,
      onEvicted: () => {},
    });
    parking.start();
    await parking.stop({ remove: true });
    expect([...here.keys()].sort()).toEqual([stuck, other]);
    expect(removingMost).toBe(4);
  });
});
