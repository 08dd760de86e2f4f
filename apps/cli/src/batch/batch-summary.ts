import { counted, spanText } from "../terminal/quantities.ts";
import { type BatchStatistics, percentileOf } from "./batch-statistics.ts";

const tenantsShown = 5;

export interface BatchSummary {
  readonly id: string;
  readonly total: number;
  readonly finished: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Failed jobs of which Berth does not know whether they ran. */
  readonly lost: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly failedBy: Readonly<Record<string, number>>;
  readonly wallMs: Percentiles;
  /** From queued to started. */
  readonly waitMs: Percentiles;
  /** By tenant, the largest first. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Throughput of this run, without results of earlier runs. */
  readonly perSecond: number;
}

interface Percentiles {
  readonly p50?: number;
  readonly p95?: number;
}

export interface SummarySource {
  readonly id: string;
  readonly total: number;
  readonly statistics: BatchStatistics;
  readonly before: number;
  readonly seconds: number;
}

export function summaryOf({ id, total, statistics, before, seconds }: SummarySource): BatchSummary {
  const { finished, failed, outcomes, failedBy, tenants } = statistics;
  const byMost = (counts: ReadonlyMap<string, number>) =>
    Object.fromEntries([...counts].sort(([, a], [, b]) => b - a));
  const cpuMs = new Map([...tenants].map(([tenant, { cpuMs }]) => [tenant, Math.round(cpuMs) / 1_000]));
  return {
    ...{ id, total, finished, succeeded: finished - failed, failed },
    lost: outcomes.get("lost") ?? 0,
    outcomes: byMost(outcomes),
    failedBy: byMost(failedBy),
    wallMs: percentiles(statistics.wallMs),
    waitMs: percentiles(statistics.waitMs),
    cpuSeconds: byMost(cpuMs),
    seconds,
    perSecond: seconds > 0 ? (finished - before) / seconds : 0,
  };
}

function percentiles(values: readonly number[]): Percentiles {
  const [p50, p95] = [percentileOf(values, 50), percentileOf(values, 95)];
  return { ...(p50 === undefined ? {} : { p50 }), ...(p95 === undefined ? {} : { p95 }) };
}

/** The summary as text, one fact per line. */
export function summaryLines(summary: BatchSummary): string[] {
  const { total, finished, succeeded, failed, failedBy, wallMs, waitMs, cpuSeconds } = summary;
  const { seconds, perSecond } = summary;
  const rate = perSecond > 0 ? `, ${perSecond.toFixed(1)} a second` : "";
  const reasons = Object.entries(failedBy).map(([name, count]) => `${name}: ${count}`);
  const span = ({ p50, p95 }: Percentiles) =>
    p50 === undefined || p95 === undefined ? undefined : `p50 ${spanText(p50)}, p95 ${spanText(p95)}`;
  const tenants = Object.entries(cpuSeconds);
  const cpu = tenants.slice(0, tenantsShown).map(([tenant, used]) => `${tenant} ${used.toFixed(1)} s`);
  const rest =
    tenants.length > tenantsShown ? [`${counted(tenants.length - tenantsShown, "more tenant")}`] : [];
  const lines: (readonly [string, string | undefined])[] = [
    ["failed by", reasons.length > 0 ? reasons.join(", ") : undefined],
    ["running", span(wallMs)],
    ["waiting", span(waitMs)],
    ["cpu", cpu.length > 0 ? [...cpu, ...rest].join(", ") : undefined],
  ];
  return [
    `${finished} of ${total} jobs ended in ${spanText(seconds * 1_000)}${rate}: ${succeeded} succeeded, ${failed} failed`,
    ...lines.flatMap(([name, text]) => (text === undefined ? [] : [`  ${name.padEnd(10)} ${text}`])),
  ];
}
