import { expect, test } from "vitest";
import { World } from "./world.ts";

const seeds = process.env.SEED === undefined ? 300 : 1;
const first = Number(process.env.SEED ?? 1);

test("smoke", async () => {
  const counts = new Map<string, number>();
  for (let seed = first; seed < first + seeds; seed++) {
    const world = new World(seed);
    const violation = await world.run();
    for (const [kind, count] of world.trace.counts) counts.set(kind, (counts.get(kind) ?? 0) + count);
    if (violation)
      expect.fail(
        `seed ${seed}: ${violation.rule}: ${violation.detail}\n${JSON.stringify(world.settings)}\n${world.trace.lines(120, violation.about)}`,
      );
  }
  console.log(Object.fromEntries(counts));
  expect(seeds).toBeGreaterThan(0);
});
