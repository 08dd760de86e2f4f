import { type ScheduleSpec, scheduledJobId, scheduleSpec } from "@berth/protocol";
import { z } from "zod";
import { dueAfter, dueTimes, type Timing } from "./cron.ts";

/** The most missed runs that `all` catches up. */
const caughtUpMost = 100;
/** A run that is late by less was not missed, since workers restart and queues delay jobs. */
export const graceMs = 10_000;

const ms = z.number().int().min(0);

/**
 * A schedule and its progress. Replacing this value as a whole decides once which due times run. Submitting their jobs can then be
 * repeated, since a due time always yields the same job id.
 */
export const scheduleState = z.strictObject({
  spec: scheduleSpec,
  anchorMs: ms,
  /** Null: never again. Kept while it is paused, so that resuming knows what was missed. */
  nextDueMs: ms.nullable(),
  runs: z.number().int().min(0),
  lastJobId: z.string().optional(),
  /** Due times that were decided and not submitted yet. `tickMs`: the due time of the tick that decided. */
  firing: z.strictObject({ tickMs: ms, dues: z.array(ms).min(1) }).optional(),
});
export type ScheduleState = z.infer<typeof scheduleState>;

/** A new schedule, or one that replaces another. If its times stay the same, it keeps its progress. */
export function putState(spec: ScheduleSpec, nowMs: number, known?: ScheduleState): ScheduleState {
  const full = { ...spec, paused: spec.paused ?? known?.spec.paused ?? false };
  if (known && sameTimes(known.spec, spec)) {
    const next = known.nextDueMs ?? dueFrom(full, known.anchorMs, nowMs);
    const nextDueMs = ended(full, known.runs) ? null : within(full, next);
    return resumed({ ...known, spec: full, nextDueMs }, known.spec.paused === true, nowMs);
  }
  const anchorMs = spec.startAtMs ?? nowMs;
  return {
    spec: full,
    anchorMs,
    nextDueMs: dueFrom(full, anchorMs, nowMs),
    runs: 0,
    ...(known?.lastJobId === undefined ? {} : { lastJobId: known.lastJobId }),
    ...(known?.firing === undefined ? {} : { firing: known.firing }),
  };
}

export function pauseState(state: ScheduleState, paused: boolean, nowMs: number): ScheduleState {
  const was = state.spec.paused === true;
  return resumed({ ...state, spec: { ...state.spec, paused } }, was, nowMs);
}

/** The runs due by now, by the catch-up policy. Returns the same state when none is. */
export function decideState(state: ScheduleState, nowMs: number): ScheduleState {
  const { spec, nextDueMs, runs } = state;
  if (state.firing || spec.paused || nextDueMs === null || nextDueMs > nowMs) return state;
  const dues = toRun(state, nextDueMs, nowMs).slice(0, (spec.maxRuns ?? Number.POSITIVE_INFINITY) - runs);
  const last = dues.at(-1);
  const after = {
    ...state,
    runs: runs + dues.length,
    nextDueMs: ended(spec, runs + dues.length) ? null : dueFrom(spec, state.anchorMs, nowMs),
  };
  if (last === undefined) return after;
  return { ...after, lastJobId: scheduledJobId(spec.id, last), firing: { tickMs: nextDueMs, dues } };
}

/** The state after the job of one decided due time was submitted. */
export function firedState(state: ScheduleState, dueMs: number): ScheduleState {
  const { firing, ...rest } = state;
  const dues = firing?.dues.filter((due) => due !== dueMs) ?? [];
  return firing && dues.length > 0 ? { ...rest, firing: { ...firing, dues } } : rest;
}

/** When a worker has to look at it next; undefined: never, or not before it is changed. */
export function wakeMs({ firing, spec, nextDueMs }: ScheduleState): number | undefined {
  if (firing) return firing.tickMs;
  return spec.paused || nextDueMs === null ? undefined : nextDueMs;
}

export function timingOf(spec: ScheduleSpec, anchorMs: number): Timing {
  return { ...spec, anchorMs };
}

function toRun({ spec, anchorMs }: ScheduleState, firstMs: number, nowMs: number): number[] {
  const timing = timingOf(spec, anchorMs);
  if (spec.catchUp === "all") return dueTimes(timing, firstMs, nowMs, caughtUpMost);
  return dueTimes(timing, firstMs, nowMs, 1).filter(
    (latest) => spec.catchUp === "once" || nowMs - latest <= graceMs,
  );
}

/** Resuming drops missed runs if the policy is `skip`. Otherwise the next tick catches them up. */
function resumed(state: ScheduleState, wasPaused: boolean, nowMs: number): ScheduleState {
  const { spec, nextDueMs, anchorMs } = state;
  if (!wasPaused || spec.paused || spec.catchUp !== "skip" || nextDueMs === null) return state;
  return { ...state, nextDueMs: nextDueMs > nowMs ? nextDueMs : dueFrom(spec, anchorMs, nowMs) };
}

function dueFrom(spec: ScheduleSpec, anchorMs: number, nowMs: number): number | null {
  return dueAfter(timingOf(spec, anchorMs), nowMs) ?? null;
}

function within({ endAtMs }: ScheduleSpec, dueMs: number | null): number | null {
  return dueMs !== null && dueMs > (endAtMs ?? Number.POSITIVE_INFINITY) ? null : dueMs;
}

function ended({ maxRuns }: ScheduleSpec, runs: number): boolean {
  return maxRuns !== undefined && runs >= maxRuns;
}

function sameTimes(one: ScheduleSpec, other: ScheduleSpec): boolean {
  return (["cron", "everyMs", "timeZone", "startAtMs"] as const).every((name) => one[name] === other[name]);
}
