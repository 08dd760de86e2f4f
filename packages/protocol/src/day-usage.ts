import { z } from "zod";
import type { JobUsage } from "./job-result.ts";

const count = z.number().int().min(0);
const dayMs = 86_400_000;

/** A UTC day, such as `2026-11-18`. */
export const usageDay = z.iso.date();
/** Maximum number of days per call. */
export const mostUsageDays = 400;
const defaultDays = 30;

const sums = {
  jobs: count.describe("that ended on that day, if a worker had them"),
  failed: count.describe("of them: all but those that were done or exited with 0"),
  cpuSeconds: z
    .number()
    .min(0)
    .describe("of commands, with all processes that they started and that have ended"),
  wallSeconds: z.number().min(0),
  peakMemoryBytes: count.describe("the largest of its jobs"),
  inBytes: count,
  outBytes: count,
};
export const usageSums = z.strictObject(sums).describe("runs that were followed by another one included");
export const dayUsage = z.strictObject({ day: usageDay, ...sums });
export type UsageSums = Readonly<z.infer<typeof usageSums>>;
export type DayUsage = Readonly<z.infer<typeof dayUsage>>;

/** UTC days, both included. Default end: today; default start: thirty days before the end. */
export const usageRange = z.strictObject({ from: usageDay.exactOptional(), to: usageDay.exactOptional() });
export type UsageRange = Readonly<z.infer<typeof usageRange>>;

/** Days since 1970. */
export interface Days {
  readonly first: number;
  readonly last: number;
}

export function dayNumber(atMs: number): number {
  return Math.floor(atMs / dayMs);
}

export function dayName(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** The days of a validated range, or the problem. */
export function daysOf({ from, to }: UsageRange, nowMs: number): Days | { readonly problem: string } {
  const last = to === undefined ? dayNumber(nowMs) : dayNumber(Date.parse(to));
  const first = from === undefined ? last - defaultDays + 1 : dayNumber(Date.parse(from));
  if (first > last)
    return { problem: `the range ends on ${dayName(last)}, before it begins on ${dayName(first)}` };
  if (last - first >= mostUsageDays)
    return { problem: `the range has ${last - first + 1} days; at most ${mostUsageDays} are read at once` };
  return { first, last };
}

export const noUsage: UsageSums = {
  ...{ jobs: 0, failed: 0, cpuSeconds: 0, wallSeconds: 0, peakMemoryBytes: 0, inBytes: 0, outBytes: 0 },
};

export function addUsage(a: UsageSums, b: UsageSums): UsageSums {
  return {
    jobs: a.jobs + b.jobs,
    failed: a.failed + b.failed,
    cpuSeconds: a.cpuSeconds + b.cpuSeconds,
    wallSeconds: a.wallSeconds + b.wallSeconds,
    peakMemoryBytes: Math.max(a.peakMemoryBytes, b.peakMemoryBytes),
    inBytes: a.inBytes + b.inBytes,
    outBytes: a.outBytes + b.outBytes,
  };
}

/** Sums several measurements of one job. */
export function addedUsage(parts: readonly (JobUsage | undefined)[]): JobUsage {
  const peaks = parts.flatMap((part) => part?.peakMemoryBytes ?? []);
  return {
    outBytes: parts.reduce((sum, part) => sum + (part?.outBytes ?? 0), 0),
    ...(peaks.length > 0 ? { peakMemoryBytes: Math.max(...peaks) } : {}),
  };
}
