import { expect, test } from "vitest";
import { inPool } from "../src/in-pool.ts";

test("a pool runs everything, never more at once than it may", async () => {
  let running = 0;
  let most = 0;
  let ran = 0;
  await inPool(3, async (add) => {
    for (let count = 0; count < 20; count++) {
      await add(async () => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        ran++;
      });
    }
  });
  expect({ most, ran, running }).toEqual({ most: 3, ran: 20, running: 0 });
});

test("a pool's first error ends it, after what was under way", async () => {
  const begun: number[] = [];
  let ended = 0;
  const pool = inPool(2, async (add) => {
    for (let count = 0; count < 10; count++) {
      await add(async () => {
        begun.push(count);
        await new Promise(setImmediate);
        if (count === 1) throw new Error("the second");
        ended++;
      });
    }
  });
  await expect(pool).rejects.toThrow("the second");
  expect(begun.length).toBeLessThan(5);
  expect(ended).toBe(begun.length - 1);
});
