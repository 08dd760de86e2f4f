import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { InSlices, Scrubber, type Work } from "../src/index.ts";

function* steps(count: number): Work<number> {
  for (let at = 0; at < count; at++) yield;
  return count;
}

test("other work goes on while tables for a thousand values are built, and they mask what those built at once do", async () => {
  const values = Array.from({ length: 1_000 }, () => randomBytes(30));
  const slices = new InSlices();
  let turns = 0;
  let isBuilt = false;
  const building = slices.do(Scrubber.building(values)).finally(() => {
    isBuilt = true;
  });
  let smallAt = Number.POSITIVE_INFINITY;
  const small = slices.do(Scrubber.building(values.slice(0, 2))).then(() => {
    smallAt = turns;
  });
  while (!isBuilt) {
    turns++;
    await setImmediate();
  }
  await small;
  // At once it would be one turn; two milliseconds each make dozens.
  expect(turns).toBeGreaterThan(5);
  expect(smallAt).toBeLessThan(turns);
  const built = await building;
  const text = Buffer.concat(values.slice(0, 50).flatMap((value) => [Buffer.from("between "), value]));
  const [one, other] = [Buffer.from(text), Buffer.from(text)];
  expect(built.maskBytes(one)).toBe(50);
  new Scrubber(values).maskBytes(other);
  expect(one.equals(other)).toBe(true);
});

test("work that fails rejects alone, and what waits behind it is done", async () => {
  const slices = new InSlices();
  const fails = slices.do(
    (function* (): Work<void> {
      yield;
      throw new RangeError("too many");
    })(),
  );
  const done = slices.do(steps(3));
  await expect(fails).rejects.toThrow("too many");
  expect(await done).toBe(3);
  expect(await slices.do(steps(1_000_000))).toBe(1_000_000);
});
