import type { KeyRecord } from "../key-record.ts";

export const scheduleRecords = {
  schedules: {
    type: "hash",
    holds: "every schedule",
    fields: {
      "<schedule>":
        "its specification and state, as JSON. The id is `<tenant>.<id>` where a tenant key chose it",
    },
    expires: false,
    ends: "field: when removed",
  },
  schedulesOf: {
    type: "set",
    of: ["<tenant>"],
    holds: "ids of the tenant's schedules",
    expires: false,
    ends: "member: when the schedule is removed",
  },
  schedulesDue: {
    type: "sorted set",
    holds: "schedule id by when it is to be looked at next",
    expires: false,
    ends: "member: when removed",
  },
  dueOrder: {
    type: "sorted set",
    of: ["<tenant>"],
    holds: "delayed jobs of one sandbox by due time, and by acceptance where due times are equal",
    expires: true,
    ends: "member: when the job is handed on; all a day after the last due time",
  },
} as const satisfies Record<string, KeyRecord>;
