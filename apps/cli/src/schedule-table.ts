import type { ScheduleView } from "./door.ts";
import { spanText } from "./terminal/quantities.ts";
import { table } from "./terminal/table.ts";

export function scheduleTable(schedules: readonly ScheduleView[]): string {
  const rows = schedules.map((one) => [
    one.id,
    one.order.tenant,
    timesText(one),
    nextText(one),
    one.runs,
    one.lastJobId ?? "-",
  ]);
  return table(["SCHEDULE", "TENANT", "WHEN", "NEXT (UTC)", "RUNS", "LAST JOB"], rows);
}

export function scheduleLine(one: ScheduleView): string {
  const isTime = !one.paused && one.nextDueMs !== undefined;
  return `${one.id}: ${timesText(one)}; next ${nextText(one)}${isTime ? " UTC" : ""}`;
}

function timesText({ cron, everyMs, timeZone }: ScheduleView): string {
  return cron === undefined ? `every ${spanText(everyMs ?? 0)}` : `${cron} ${timeZone}`;
}

function nextText({ paused, nextDueMs }: ScheduleView): string {
  if (paused) return "paused";
  return nextDueMs === undefined
    ? "never again"
    : new Date(nextDueMs).toISOString().slice(0, 19).replace("T", " ");
}
