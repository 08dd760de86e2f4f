import { expect, test } from "vitest";
import { PerSecond } from "../src/per-second.ts";

test("a rate is of the last ten seconds, or of less if it began later", () => {
  const clock = { ms: 1_000_000 };
  const ends = new PerSecond(() => clock.ms);
  expect(ends.rate).toBe(0);
  for (let index = 0; index < 40; index++) {
    ends.add();
    clock.ms += 100;
  }
  expect(ends.rate).toBe(10);
  for (let index = 0; index < 100; index++) {
    ends.add();
    ends.add();
    clock.ms += 100;
  }
  expect(ends.rate).toBeGreaterThan(17);
  expect(ends.rate).toBeLessThanOrEqual(20);
  clock.ms += 60_000;
  expect(ends.rate).toBe(0);
});
