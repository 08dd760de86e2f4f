import { describe, expect, test } from "vitest";
import { dueAfter, dueTimes, type Timing, timingProblem } from "../src/schedule/cron.ts";

const at = (text: string) => Date.parse(text);
const shown = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());
const cron = (expression: string, timeZone = "UTC", more: Partial<Timing> = {}): Timing => ({
  id: "nightly" as Timing["id"],
  cron: expression,
  everyMs: undefined,
  timeZone,
  anchorMs: 0,
  ...more,
});
const every = (everyMs: number, more: Partial<Timing> = {}): Timing => ({
  ...cron("", "UTC", more),
  cron: undefined,
  everyMs,
});

/** The due times after a moment, as a clock in the zone shows them and as they are. */
function chain(timing: Timing, from: string, count: number): string[] {
  const times: string[] = [];
  for (let last = at(from); times.length < count; ) {
    const due = dueAfter(timing, last);
    if (due === undefined) break;
    times.push(new Date(due).toISOString().replace(/:00\.000Z$/, "Z"));
    last = due;
  }
  return times;
}

describe("cron expression", () => {
  test("a cron expression is read in its time zone, with five fields or with seconds first", () => {
    expect(shown(dueAfter(cron("30 9 * * 1", "Asia/Kolkata"), at("2026-01-01T00:00:00Z")))).toBe(
      "2026-01-05T04:00:00.000Z",
    );
    expect(shown(dueAfter(cron("*/10 * * * * *"), at("2026-01-01T00:00:05Z")))).toBe(
      "2026-01-01T00:00:10.000Z",
    );
  });

  test("a cron expression is due strictly after the moment asked for", () => {
    const noon = at("2026-01-01T12:00:00Z");
    expect(dueAfter(cron("0 12 * * *"), noon - 1)).toBe(noon);
    expect(shown(dueAfter(cron("0 12 * * *"), noon))).toBe("2026-01-02T12:00:00.000Z");
  });

  test("a cron expression is not due before its start or after its end", () => {
    const timing = cron("0 0 * * *", "UTC", {
      startAtMs: at("2026-02-01T00:00:00Z"),
      endAtMs: at("2026-02-02T12:00:00Z"),
    });
    expect(chain(timing, "2026-01-01T00:00:00Z", 5)).toEqual(["2026-02-01T00:00Z", "2026-02-02T00:00Z"]);
  });

  test.each([
    ["a field out of range", "61 * * * *"],
    ["a day no month has", "0 0 30 2 *"],
    ["a day none of its months has", "0 0 31 4,6 *"],
    ["words", "every monday at noon x"],
  ])("a cron expression with %s is refused", (_, expression) => {
    expect(timingProblem(cron(expression), at("2026-01-01T00:00:00Z"))).toMatch(/^cron: /);
  });

  test("a cron expression that chooses at random chooses the same for the same schedule", () => {
    const from = at("2026-01-01T00:00:00Z");
    const first = dueAfter(cron("H H * * *"), from);
    expect(dueAfter(cron("H H * * *"), from)).toBe(first);
  });
});

describe("when clocks go forward", () => {
  test("when clocks go forward, a daily 02:30 runs once, an hour later by the clock, and at 02:30 again the next day", () => {
    expect(chain(cron("30 2 * * *", "Europe/Berlin"), "2026-03-28T00:00:00Z", 3)).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:30Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("when clocks go forward, all times of the skipped hour run, in order and once each", () => {
    expect(chain(cron("0,30 2,3 * * *", "Europe/Berlin"), "2026-03-28T12:00:00Z", 4)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-29T01:30Z",
      "2026-03-30T00:00Z",
      "2026-03-30T00:30Z",
    ]);
  });

  test("when clocks go forward by half an hour, a skipped time runs after a later time that was not skipped", () => {
    expect(chain(cron("15,30 2 * * *", "Australia/Lord_Howe"), "2026-10-03T12:00:00Z", 2)).toEqual([
      "2026-10-03T15:30Z",
      "2026-10-03T15:45Z",
    ]);
  });

  test("when clocks go forward, an hourly schedule runs every hour", () => {
    expect(chain(cron("15 * * * *", "Europe/Berlin"), "2026-03-29T00:00:00Z", 3)).toEqual([
      "2026-03-29T00:15Z",
      "2026-03-29T01:15Z",
      "2026-03-29T02:15Z",
    ]);
  });
});

describe("when clocks go back", () => {
  test("when clocks go back, a daily 02:30 runs once, the first time the clock shows it", () => {
    expect(chain(cron("30 2 * * *", "Europe/Berlin"), "2026-10-24T00:00:00Z", 3)).toEqual([
      "2026-10-24T00:30Z",
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
    ]);
  });

  test("when clocks go back, a fixed hour asked for between its two showings waits for the next day", () => {
    const between = at("2026-10-25T00:45:00Z");
    expect(shown(dueAfter(cron("30 2 * * *", "Europe/Berlin"), between))).toBe("2026-10-26T01:30:00.000Z");
  });

  test("when clocks go back, an hourly schedule runs every hour", () => {
    expect(chain(cron("15 * * * *", "Europe/Berlin"), "2026-10-24T23:30:00Z", 4)).toEqual([
      "2026-10-25T00:15Z",
      "2026-10-25T01:15Z",
      "2026-10-25T02:15Z",
      "2026-10-25T03:15Z",
    ]);
  });
});

describe("a daily time of day", () => {
  test.each([
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Asia/Beirut",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "America/St_Johns",
    "Asia/Kolkata",
  ])("a daily time is due once on every day of a year in %s, and is found quickly", (timeZone) => {
    const day = new Intl.DateTimeFormat("en-CA", { timeZone, dateStyle: "short" });
    const began = performance.now();
    for (const expression of ["0 0 * * *", "30 1 * * *", "15 2 * * *", "30 23 * * *"]) {
      const days = new Map<string, number>();
      for (let due = dueAfter(cron(expression, timeZone), at("2026-01-01T00:00:00Z")); due !== undefined; ) {
        days.set(day.format(due), (days.get(day.format(due)) ?? 0) + 1);
        if (due > at("2026-12-30T00:00:00Z")) break;
        due = dueAfter(cron(expression, timeZone), due);
      }
      expect([...days.values()].filter((count) => count !== 1)).toEqual([]);
      expect(days.size).toBeGreaterThanOrEqual(363);
    }
    // Half a millisecond each on a quiet machine. A parser that walks into a gap took 20 seconds for one.
    expect(performance.now() - began).toBeLessThan(30_000);
  });
});

describe("fixed interval", () => {
  test("a fixed interval counts from its anchor, and a start is itself a due time", () => {
    expect(dueAfter(every(1_000, { anchorMs: 500 }), 500)).toBe(1_500);
    expect(dueAfter(every(1_000, { anchorMs: 500 }), 2_499)).toBe(2_500);
    expect(dueAfter(every(1_000, { anchorMs: 5_000, startAtMs: 5_000 }), 10)).toBe(5_000);
  });
});

describe("missed runs", () => {
  test("the missed runs are every due time from the first on, in order", () => {
    expect(dueTimes(every(1_000), 1_000, 4_500, 100)).toEqual([1_000, 2_000, 3_000, 4_000]);
    const minutes = cron("* * * * *");
    const first = at("2026-01-01T00:00:00Z");
    expect(dueTimes(minutes, first, first + 150_000, 100)).toEqual([first, first + 60_000, first + 120_000]);
  });

  test("of too many missed runs only the newest are returned, without a walk through all of them", () => {
    const began = performance.now();
    const first = at("2025-01-01T00:00:00Z");
    const now = at("2026-01-01T00:00:00Z");
    const seconds = dueTimes(cron("* * * * * *"), first, now, 100);
    expect(seconds).toEqual(Array.from({ length: 100 }, (_, index) => now - (99 - index) * 1_000));
    expect(dueTimes(every(1_000), first, now, 2)).toEqual([now - 1_000, now]);
    // Walking would take an hour.
    expect(performance.now() - began).toBeLessThan(30_000);
  });

  test("no run was missed if the first is still to come, and none after the schedule's end", () => {
    expect(dueTimes(every(1_000), 5_000, 4_000, 10)).toEqual([]);
    expect(dueTimes(every(1_000, { endAtMs: 2_500 }), 1_000, 9_000, 10)).toEqual([1_000, 2_000]);
  });
});
