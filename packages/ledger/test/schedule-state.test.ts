import { type ScheduleInput, scheduleSpec } from "@berth/protocol";
import { describe, expect, test } from "vitest";
import {
  decideState,
  firedState,
  pauseState,
  putState,
  type ScheduleState,
  wakeMs,
} from "../src/schedule/schedule-state.ts";

const order = { tenant: "acme", request: { kind: "exec", command: "true" } } as const;
const made = 1_000_000;
const second = 1_000;

function put(more: Partial<ScheduleInput> = {}, known?: ScheduleState, now = made): ScheduleState {
  return putState(scheduleSpec.parse({ id: "tick", everyMs: 60 * second, order, ...more }), now, known);
}

/** Decides at a moment, and hands on everything that was decided. */
function ran(state: ScheduleState, now: number): { state: ScheduleState; dues: readonly number[] } {
  const decided = decideState(state, now);
  const dues = decided.firing?.dues ?? [];
  return { state: dues.reduce(firedState, decided), dues: dues.map((due) => due - made) };
}

describe("schedule", () => {
  test("a schedule runs each due time once and goes on to the next", () => {
    const first = ran(put(), made + 60 * second);
    expect(first.dues).toEqual([60 * second]);
    expect(first.state).toMatchObject({
      nextDueMs: made + 120 * second,
      runs: 1,
      lastJobId: `tick@${made + 60 * second}`,
    });
    expect(ran(first.state, made + 61 * second)).toEqual({ state: first.state, dues: [] });
    expect(ran(first.state, made + 120 * second).dues).toEqual([120 * second]);
  });

  test("a schedule decides nothing more before what was decided is handed on", () => {
    const decided = decideState(put({ catchUp: "all" }), made + 120 * second);
    expect(decided.firing?.dues).toHaveLength(2);
    expect(decideState(decided, made + 600 * second)).toBe(decided);
    expect(wakeMs(decided)).toBe(made + 60 * second);
  });

  test("a schedule has no next run after its last one", () => {
    const { state, dues } = ran(put({ catchUp: "all", maxRuns: 2 }), made + 300 * second);
    expect(dues).toEqual([60 * second, 120 * second]);
    expect(state.nextDueMs).toBeNull();
    expect(wakeMs(state)).toBeUndefined();
  });
});

describe("runs that were missed", () => {
  const late = made + 605 * second;

  test("missed runs are skipped, except one that is late by less than the grace period", () => {
    expect(ran(put(), late + 10 * second).dues).toEqual([]);
    expect(ran(put(), late).dues).toEqual([600 * second]);
    expect(ran(put(), late + 10 * second).state.nextDueMs).toBe(made + 660 * second);
  });

  test("missed runs are caught up by one run, of the newest due time", () => {
    expect(ran(put({ catchUp: "once" }), late + 40 * second).dues).toEqual([600 * second]);
  });

  test("all missed runs are caught up, the newest hundred at most", () => {
    expect(ran(put({ catchUp: "all" }), late).dues).toHaveLength(10);
    const { dues, state } = ran(put({ catchUp: "all" }), made + 1_000 * 60 * second);
    expect(dues).toHaveLength(100);
    expect(dues.at(-1)).toBe(1_000 * 60 * second);
    expect(state.nextDueMs).toBe(made + 1_001 * 60 * second);
  });
});

describe("paused schedule", () => {
  const now = made + 605 * second;
  const resumed = (more: Partial<ScheduleInput>) => {
    const paused = pauseState(put(more), true, made);
    expect(wakeMs(paused)).toBeUndefined();
    expect(ran(paused, now).dues).toEqual([]);
    return ran(pauseState(paused, false, now), now).dues;
  };

  test("a paused schedule runs nothing, and catches up by its policy when it is resumed", () => {
    expect(resumed({ catchUp: "skip" })).toEqual([]);
    expect(resumed({ catchUp: "once" })).toEqual([600 * second]);
    expect(resumed({ catchUp: "all" })).toHaveLength(10);
  });

  test("a paused schedule stays paused when it is put again without `paused`, and resumes with `paused: false`", () => {
    const paused = put({}, pauseState(put(), true, made));
    expect(paused.spec.paused).toBe(true);
    expect(put({ paused: false }, paused, now).nextDueMs).toBe(made + 660 * second);
  });
});

describe("putting a schedule again", () => {
  test("putting a schedule again with the same times neither skips nor repeats a run", () => {
    const { state } = ran(put(), made + 60 * second);
    const again = put({ order: { ...order, priority: 3 } }, state, made + 90 * second);
    expect(again).toMatchObject({
      nextDueMs: made + 120 * second,
      runs: 1,
      spec: { order: { priority: 3 } },
    });
  });

  test("putting a schedule again with other times starts it from the beginning", () => {
    const { state } = ran(put(), made + 60 * second);
    const again = put({ everyMs: 30 * second }, state, made + 90 * second);
    expect(again).toMatchObject({ nextDueMs: made + 120 * second, runs: 0, anchorMs: made + 90 * second });
  });

  test("putting a schedule again with more runs, or a later end, revives one that had ended", () => {
    const { state } = ran(put({ maxRuns: 1 }), made + 60 * second);
    expect(put({ maxRuns: 2 }, state, made + 61 * second).nextDueMs).toBe(made + 120 * second);
    expect(put({ endAtMs: made + 100 * second }, put()).nextDueMs).toBe(made + 60 * second);
    expect(put({ endAtMs: made + 30 * second }, put()).nextDueMs).toBeNull();
  });
});
