import { describe, expect, test } from "vitest";
import { backoffMs, problemsOf, scheduleSpec } from "../src/index.ts";

const order = { tenant: "acme", request: { kind: "exec", command: "true" } };
const good = { id: "nightly", cron: "0 3 * * *", order };
const problems = (spec: unknown) => {
  const parsed = scheduleSpec.safeParse(spec);
  return parsed.success ? [] : problemsOf(parsed.error);
};

describe("schedule's specification", () => {
  test("a schedule's specification gets its defaults", () => {
    expect(scheduleSpec.parse(good)).toEqual({ ...good, timeZone: "UTC", catchUp: "skip" });
  });

  test.each<[string, object, RegExp]>([
    ["neither cron nor interval", { cron: undefined }, /either cron or everyMs/],
    ["both", { everyMs: 1_000 }, /either cron or everyMs/],
    ["four fields", { cron: "* * * *" }, /5 fields/],
    ["an empty expression", { cron: "" }, /5 fields/],
    ["an unknown zone", { timeZone: "Europe/Atlantis" }, /timeZone: .*IANA/],
    ["an offset for a zone", { timeZone: "+02:00" }, /timeZone: .*IANA/],
    ["an interval too short to keep", { cron: undefined, everyMs: 10 }, /everyMs/],
    ["an order with an id", { order: { ...order, id: "x" } }, /order\.id: is set by the fleet/],
    ["an order that is no job", { order: { tenant: "acme", request: { kind: "dance" } } }, /order: request/],
    [
      "an order too large to be kept",
      { order: { ...order, request: { kind: "write", path: "a", content: "x".repeat(70_000) } } },
      /at most 65536 bytes/,
    ],
    ["an unknown name", { colour: "red" }, /colour/],
  ])("a schedule's specification with %s is refused with the reason", (_, change, why) => {
    expect(problems({ ...good, ...change }).join("\n")).toMatch(why);
  });
});

describe("pause before another attempt", () => {
  const backoff = { backoffMs: 1_000, maxBackoffMs: 5_000, factor: 2, jitter: 0.5 };

  test("the pause before another attempt grows by the factor up to its maximum", () => {
    const pauses = [1, 2, 3, 4, 20].map((attempt) => backoffMs(attempt, backoff, () => 0));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  test("jitter shortens the pause before another attempt by at most its share, and no pause is shorter than the one before", () => {
    for (const random of [0, 0.3, 0.999]) {
      const pauses = [1, 2, 3].map((attempt) => backoffMs(attempt, backoff, () => random));
      expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
    }
    expect(backoffMs(1, backoff, () => 0.999)).toBeGreaterThanOrEqual(500);
    expect(backoffMs(1, { ...backoff, jitter: 0 }, () => 0.999)).toBe(1_000);
  });
});
