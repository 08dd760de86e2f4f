import type { KeyRecord } from "../key-record.ts";

export const deadLetterRecords = {
  deadOf: {
    type: "sorted set",
    of: ["<tenant>"],
    holds: "id of the tenant's dead letters by when they were added",
    expires: true,
    ends: "member: with the letter; the oldest when there are more than the tenant's ceiling; all seven days after the last one",
  },
} as const satisfies Record<string, KeyRecord>;
