import { describe, expect, test } from "vitest";
import { Pace } from "../src/terminal/pace.ts";

/** The estimates, one each second, for 1,000 jobs that end as `doneAt` returns. */
function run(
  doneAt: (ms: number) => number,
  untilMs: number,
): { atMs: number; leftMs: number; perSecond: number }[] {
  const pace = new Pace();
  const said = [];
  for (let ms = 0; ms <= untilMs; ms += 100) {
    const { leftMs, perSecond } = pace.at(ms, doneAt(ms), 1_000);
    if (ms % 1_000 === 0 && leftMs !== undefined) said.push({ atMs: ms, leftMs, perSecond });
  }
  return said;
}

describe("estimate of a batch's end", () => {
  test("the estimate of a batch's end does not jump when ends come in bursts of five seconds", () => {
    const said = run((ms) => Math.floor(ms / 5_000) * 50, 80_000).filter(({ atMs }) => atMs > 15_000);
    for (const [index, { atMs, leftMs }] of said.entries()) {
      const next = said[index + 1];
      // A second later a second less is left, and not many more or fewer.
      if (next) expect(Math.abs(next.leftMs - leftMs + 1_000), `at ${atMs}`).toBeLessThan(leftMs * 0.15);
      expect(Math.abs(leftMs - (100_000 - atMs)) / (100_000 - atMs), `at ${atMs}`).toBeLessThan(0.45);
    }
  });

  test("the estimate of a batch's end is right within a second for a steady pace", () => {
    for (const { atMs, leftMs, perSecond } of run((ms) => ms / 100, 90_000)) {
      expect(leftMs, `at ${atMs}`).toBeCloseTo(100_000 - atMs, -3);
      expect(perSecond).toBeCloseTo(10, 1);
    }
  });

  test("the estimate of a batch's end forgets a slow beginning, such as sandboxes that had to start", () => {
    const said = run((ms) => Math.max(0, ms - 10_000) / 50, 50_000);
    const { atMs, leftMs } = said.at(-1) ?? { atMs: 0, leftMs: 0 };
    expect(Math.abs(leftMs - (60_000 - atMs))).toBeLessThan(3_000);
  });

  test("the estimate of a batch's end is not shown before two seconds, nor before anything has ended", () => {
    const pace = new Pace();
    expect(pace.at(0, 0, 10)).toEqual({ perSecond: 0, leftMs: undefined });
    expect(pace.at(1_000, 5, 10).leftMs).toBeUndefined();
    expect(new Pace().at(9_000, 0, 10)).toEqual({ perSecond: 0, leftMs: undefined });
  });
});
