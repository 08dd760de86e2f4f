import type { KeyRecord } from "../key-record.ts";

export const usageRecords = {
  usage: {
    type: "hash",
    of: ["<owner>", "<tenant>"],
    holds: "what the tenant's jobs used, by day",
    fields: {
      "<day>":
        "the day's number since 1970 to: jobs, failed, cpu in microseconds, wall time in ms, peak memory in KiB, bytes in, bytes out",
    },
    expires: true,
    ends: "field: after BERTH_USAGE_DAYS; the key that long after the last day on which something was used",
  },
  usageTenants: {
    type: "sorted set",
    holds: "tenant by the last day on which its jobs used something, as the day's number since 1970",
    expires: false,
    ends: "member: BERTH_USAGE_DAYS later",
  },
} as const satisfies Record<string, KeyRecord>;
