import {
  addUsage,
  type Days,
  type DayUsage,
  dayName,
  dayNumber,
  type JobResult,
  noUsage,
  redisKeys,
  sharedOwner,
  type TenantId,
  type UsageSums,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Default of BERTH_USAGE_DAYS. */
export const usageDaysKept = 92;

/** What `usage.lua` adds to a tenant's day. */
export type UsedByAttempt = Pick<JobResult, "timing" | "usage">;

/** The parts of `usage.lua` from the third on, as whole numbers. Empty: nothing ran. */
export function usedArgument(used: UsedByAttempt | undefined): string {
  if (used === undefined) return "";
  const { timing, usage } = used;
  const { peakMemoryBytes = 0, inBytes = 0, outBytes = 0 } = usage ?? {};
  const parts = [timing.cpuMs * 1_000, timing.wallMs, peakMemoryBytes / 1_024, inBytes, outBytes];
  return parts.map((part) => Math.round(part)).join(" ");
}

/** The days on which the tenant's jobs used something, the first day first. */
export async function readUsage(redis: Redis, tenant: TenantId, { first, last }: Days): Promise<DayUsage[]> {
  const hashes = await Promise.all(
    [tenant, sharedOwner].map((owner) => redis.hgetall(redisKeys.usage(owner, tenant))),
  );
  const days = new Map<number, UsageSums>();
  for (const hash of hashes)
    for (const [field, text] of Object.entries(hash)) {
      const day = Number(field);
      if (day < first || day > last) continue;
      days.set(day, addUsage(days.get(day) ?? noUsage, sumsIn(text)));
    }
  return [...days].sort(([a], [b]) => a - b).map(([day, sums]) => ({ day: dayName(day), ...sums }));
}

/** Today's, for limits. */
export async function readUsageToday(redis: Redis, tenant: TenantId, nowMs: number): Promise<UsageSums> {
  const today = dayNumber(nowMs);
  const [day] = await readUsage(redis, tenant, { first: today, last: today });
  return day ?? noUsage;
}

/** Tenants whose jobs used something on the first of these days or later, the latest first. */
export async function tenantsWithUsage(redis: Redis, { first }: Days, limit: number): Promise<string[]> {
  return redis.zrange(redisKeys.usageTenants, "+inf", String(first), "BYSCORE", "REV", "LIMIT", 0, limit);
}

function sumsIn(text: string): UsageSums {
  const [jobs = 0, failed = 0, cpuUs = 0, wallMs = 0, peakKib = 0, inBytes = 0, outBytes = 0] = text
    .split(" ")
    .map(Number);
  return {
    ...{ jobs, failed, inBytes, outBytes },
    cpuSeconds: cpuUs / 1e6,
    wallSeconds: wallMs / 1e3,
    peakMemoryBytes: peakKib * 1_024,
  };
}
