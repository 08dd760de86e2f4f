import type { JobView } from "@berth/client";
import { expect, test } from "vitest";
import { batchJobs } from "../src/door/client-batch-jobs.ts";

/** A fleet that knows the jobs of the batch `b` at these positions, and counts how often it is asked. */
function fleetWith(isKnown: (position: number) => boolean) {
  let asked = 0;
  const find = async (id: string) => {
    asked++;
    const position = Number(/^b-(\d+)$/.exec(id)?.[1]);
    return isKnown(position) ? ({ id } as JobView) : undefined;
  };
  const positions = async () => {
    const found: number[] = [];
    for await (const { id } of batchJobs(find, "b")) found.push(Number(id.slice(2)));
    return found;
  };
  return { positions, asked: () => asked };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

test.for([
  [0, 5],
  [0, 1_234],
  [180, 190],
  [300, 900],
  [50_000, 75_000],
] as const)("all known jobs of a batch are found: those from %i up to %i", async ([from, to]) => {
  const fleet = fleetWith((position) => position >= from && position < to);
  expect(await fleet.positions()).toEqual(range(from, to));
});

test("a batch of which no job is known costs a bounded number of questions", async () => {
  const fleet = fleetWith(() => false);
  expect(await fleet.positions()).toEqual([]);
  expect(fleet.asked()).toBeLessThan(2_000);
});
