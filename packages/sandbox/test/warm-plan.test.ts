import { describe, expect, test } from "vitest";
import { type Demand, planWarm, warmTargets } from "../src/docker/warm/warm-plan.ts";
import type { WarmShape } from "../src/docker/warm/warm-shape.ts";

const shape = (id: string) => ({ id }) as WarmShape;
const [base, other, third] = [shape("base"), shape("other"), shape("third")];
const sizes = { count: 2, most: 6 };
const nowMs = 1_000_000;

const asked = (one: WarmShape, times: number, agoMs: number): Demand[] =>
  Array.from({ length: times }, () => ({ shape: one, atMs: nowMs - agoMs }));

function targets(demand: readonly Demand[], of: WarmShape | undefined = base, limits = sizes) {
  return Object.fromEntries(
    [...warmTargets(demand, of, limits, nowMs)].map(([{ id }, count]) => [id, count]),
  );
}

describe("how many containers should wait", () => {
  test("without demand the target of the warm pool is the configured count, of the base shape", () => {
    expect(targets([])).toEqual({ base: 2 });
    expect(targets(asked(other, 5, 400_000))).toEqual({ base: 2 });
  });

  test("in a burst the target of the warm pool is as many as were asked for in a minute, up to the most", () => {
    expect(targets(asked(base, 4, 10_000))).toEqual({ base: 4 });
    expect(targets(asked(base, 40, 10_000))).toEqual({ base: 6 });
    // The burst is over: its shape still shares what is left.
    expect(targets(asked(other, 40, 90_000))).toEqual({ other: 2 });
  });

  test("shapes share by how often each was asked for lately", () => {
    expect(targets([...asked(base, 2, 10_000), ...asked(other, 4, 10_000)])).toEqual({ base: 3, other: 3 });
    expect(targets([...asked(base, 1, 100_000), ...asked(other, 2, 100_000)])).toEqual({ base: 1, other: 1 });
  });

  test("no container waits for a base image that cannot be prepared, and others still may", () => {
    expect(Object.fromEntries(warmTargets([], undefined, sizes, nowMs))).toEqual({});
    const found = [...warmTargets(asked(other, 1, 10_000), undefined, sizes, nowMs)];
    expect(found).toEqual([[other, 2]]);
  });
});

describe("step towards the targets", () => {
  const wanted = new Map([
    [base, 2],
    [other, 3],
  ]);

  test("a step towards the targets makes one of the shape that is missed most", () => {
    expect(planWarm(wanted, new Map([["base", 1]]))).toEqual({ make: other, remove: undefined });
    expect(
      planWarm(
        wanted,
        new Map([
          ["base", 1],
          ["other", 3],
        ]),
      ),
    ).toEqual({ make: base, remove: undefined });
  });

  test("a step towards the targets is none when as many wait as should", () => {
    const ready = new Map([
      ["base", 2],
      ["other", 3],
    ]);
    expect(planWarm(wanted, ready)).toEqual({ make: undefined, remove: undefined });
  });

  test("a step towards the targets removes what is asked for no more, or too many of", () => {
    expect(planWarm(wanted, new Map([[third.id, 1]])).remove).toBe("third");
    expect(planWarm(wanted, new Map([["base", 3]])).remove).toBe("base");
  });
});
