import type { ScheduleSpec } from "@berth/protocol";
import { CronExpressionParser } from "cron-parser";
import { offsetMs, readings } from "./cron-zone.ts";

/** When a schedule is due. `anchorMs`: what a fixed interval counts from. */
export type Timing = Pick<ScheduleSpec, "id" | "cron" | "everyMs" | "timeZone" | "startAtMs" | "endAtMs"> & {
  readonly anchorMs: number;
};

/** The largest change of clocks, apart from days on which a country crossed the date line. */
const largestChangeMs = 3 * 3_600_000;

/**
 * The first due time after a moment, or undefined if there is none. When the clocks change, a fixed hour is due exactly once: a skipped
 * time as much later as the clocks went forward (02:30 at 03:30), a repeated time when it comes first. Where the hour is a `*`, a skipped
 * time is not due, and a repeated one is due twice.
 */
export function dueAfter(timing: Timing, afterMs: number): number | undefined {
  const from = Math.max(afterMs, (timing.startAtMs ?? 0) - 1);
  const due =
    timing.everyMs === undefined ? cronAfter(timing, from) : everyAfter(timing, timing.everyMs, from);
  return due === undefined || due > (timing.endAtMs ?? Number.POSITIVE_INFINITY) ? undefined : due;
}

/** The due times from a first one up to a moment, in order: the newest ones if there are more than asked for. */
export function dueTimes(timing: Timing, firstMs: number, untilMs: number, most: number): number[] {
  const until = Math.min(untilMs, timing.endAtMs ?? untilMs);
  if (firstMs > until) return [];
  if (timing.everyMs !== undefined) return everyUntil(timing.everyMs, firstMs, until, most);
  const forward = [firstMs];
  for (let due = dueAfter(timing, firstMs); due !== undefined && due <= until; due = dueAfter(timing, due)) {
    if (forward.length === most) return newestUntil(timing, firstMs, until, most);
    forward.push(due);
  }
  return forward;
}

/** Why a timing cannot be used, or undefined. */
export function timingProblem(timing: Timing, nowMs: number): string | undefined {
  if (timing.cron === undefined) return undefined;
  try {
    walls(timing, nowMs).next();
    return undefined;
  } catch (error) {
    return `cron: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function everyAfter({ anchorMs }: Timing, everyMs: number, afterMs: number): number {
  if (afterMs < anchorMs) return anchorMs;
  return anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs;
}

function everyUntil(everyMs: number, firstMs: number, untilMs: number, most: number): number[] {
  const last = firstMs + Math.floor((untilMs - firstMs) / everyMs) * everyMs;
  const count = Math.min(most, (last - firstMs) / everyMs + 1);
  return Array.from({ length: count }, (_, index) => last - (count - 1 - index) * everyMs);
}

function cronAfter(timing: Timing, afterMs: number): number | undefined {
  const { timeZone } = timing;
  const around = [-largestChangeMs, 0, largestChangeMs].map((by) => offsetMs(timeZone, afterMs + by));
  const cron = walls(timing, afterMs + Math.min(...around));
  let best: number | undefined;
  try {
    for (;;) {
      const wall = cron.next().getTime();
      const { moments, earliest, plain } = momentsOf(timing, wall);
      // Around a change, a later reading can be an earlier moment.
      if (best !== undefined && earliest >= best) return best;
      const due = moments.find((moment) => moment > afterMs);
      if (due !== undefined && plain) return Math.min(due, best ?? due);
      if (due !== undefined) best = Math.min(due, best ?? due);
    }
  } catch {
    // The parser searched years ahead: the expression is never due again.
    return best;
  }
}

/** Skips many due times, as after an outage of days for a schedule that is due every second. */
function newestUntil(timing: Timing, firstMs: number, untilMs: number, most: number): number[] {
  const cron = walls(timing, untilMs + offsetMs(timing.timeZone, untilMs) + largestChangeMs);
  const dues = new Set<number>();
  for (;;) {
    const wall = cron.prev().getTime();
    const { moments } = momentsOf(timing, wall);
    for (const moment of moments) if (moment >= firstMs && moment <= untilMs) dues.add(moment);
    const past = moments.length > 0 && moments.every((moment) => moment < firstMs);
    if (past || dues.size >= most) return [...dues].sort((a, b) => a - b).slice(-most);
  }
}

function momentsOf(timing: Timing, wallMs: number) {
  const { shown, once, earliest, plain } = readings(timing.timeZone, wallMs);
  return { moments: everyHour(timing) ? shown : [once], earliest, plain };
}

function everyHour({ cron = "" }: Timing): boolean {
  return /^[*?]/.test(cron.trim().split(/\s+/).at(-4) ?? "");
}

/**
 * The parser works in UTC, and this file maps its readings to a zone. With a zone of its own the parser took 20 seconds to pass Lord Howe
 * Island's change of half an hour, and missed some times of a skipped hour.
 */
function walls({ cron = "", id }: Timing, currentMs: number) {
  return CronExpressionParser.parse(cron, { currentDate: new Date(currentMs), tz: "UTC", hashSeed: id });
}
