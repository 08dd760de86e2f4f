import {
  addUsage,
  type Days,
  type DayUsage,
  dayName,
  daysOf,
  noUsage,
  type TenantId,
  tenantId,
  type UsageRange,
  type UsageSums,
  usageRange,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { checked, invalid } from "../checked.ts";
import { readTenantNames } from "../fleet/tenant-names.ts";
import { redisNow } from "../redis-now.ts";
import { readUsage, tenantsWithUsage } from "./usage-record.ts";

/** What one tenant used. Days of UTC, `from` and `to` included. */
export interface UsageReport {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
  readonly total: UsageSums;
  /** The days on which it used something. */
  readonly days: readonly DayUsage[];
}

export interface FleetUsage {
  readonly from: string;
  readonly to: string;
  /** The tenant with the most cpu first. */
  readonly tenants: readonly (UsageSums & { readonly tenant: string; readonly name?: string })[];
  /** Only the latest thousand tenants were read, and more used something. */
  readonly truncated: boolean;
}

export interface FleetUsageQuery extends UsageRange {
  /** Default 100. */
  readonly limit?: number;
}

const lookedAtMost = 1_000;
const readAtOnce = 50;

export async function usageReport(
  redis: Redis,
  tenant: TenantId,
  range: UsageRange = {},
): Promise<UsageReport> {
  const days = await daysFor(redis, range);
  const used = await readUsage(redis, tenant, days);
  return { tenant, ...names(days), total: used.reduce<UsageSums>(sumOf, noUsage), days: used };
}

export async function fleetUsage(
  redis: Redis,
  { limit = 100, ...range }: FleetUsageQuery = {},
): Promise<FleetUsage> {
  if (!(limit >= 1)) throw invalid("the limit", limit, "a limit is a number from 1 on");
  const days = await daysFor(redis, range);
  const known = await tenantsWithUsage(redis, days, lookedAtMost + 1);
  const looked = known.slice(0, lookedAtMost).map((name) => tenantId.parse(name));
  const tenants: (UsageSums & { tenant: string })[] = [];
  for (let from = 0; from < looked.length; from += readAtOnce) {
    const page = looked.slice(from, from + readAtOnce);
    const read = await Promise.all(page.map((tenant) => readUsage(redis, tenant, days)));
    for (const [index, used] of read.entries())
      if (used.length > 0)
        tenants.push({ tenant: page[index] ?? "", ...used.reduce<UsageSums>(sumOf, noUsage) });
  }
  tenants.sort((a, b) => b.cpuSeconds - a.cpuSeconds || b.wallSeconds - a.wallSeconds);
  const shown = tenants.slice(0, limit);
  const given = await readTenantNames(
    redis,
    shown.map(({ tenant }) => tenant),
  );
  const named = shown.map((one) => {
    const name = given.get(one.tenant);
    return name === undefined ? one : { ...one, name };
  });
  return { ...names(days), tenants: named, truncated: known.length > looked.length };
}

async function daysFor(redis: Redis, range: UsageRange): Promise<Days> {
  const { from, to } = checked(usageRange, range, "the range of days");
  const days = daysOf({ ...(from ? { from } : {}), ...(to ? { to } : {}) }, await redisNow(redis));
  if ("problem" in days) throw invalid("the range of days", `${from ?? ""} to ${to ?? ""}`, days.problem);
  return days;
}

function names({ first, last }: Days) {
  return { from: dayName(first), to: dayName(last) };
}

function sumOf(total: UsageSums, { day: _, ...sums }: DayUsage): UsageSums {
  return addUsage(total, sums);
}
