import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { soFar } from "../src/so-far.ts";

/** A stream whose events come each after a pause, as over a slow connection, and which then stays open. */
async function* slow(...pausesMs: readonly number[]): AsyncGenerator<number> {
  for (const [index, ms] of pausesMs.entries()) {
    await sleep(ms);
    yield index;
  }
  await new Promise(() => {});
}

async function read(events: AsyncIterable<number>): Promise<number[]> {
  const found: number[] = [];
  for await (const event of events) found.push(event);
  return found;
}

test("berth logs waits for an event that must exist for longer than for one that may not", async () => {
  expect(await read(soFar(slow(1_000), { firstMs: 60_000 }))).toEqual([0]);
  expect(await read(soFar(slow(0, 1_000), { firstMs: 60_000, nextMs: 5_000 }))).toEqual([0, 1]);
});

test("berth logs ends when no event of a running job comes for a while", async () => {
  expect(await read(soFar(slow(0)))).toEqual([0]);
});
