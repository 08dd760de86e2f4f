import type { KeyRecord } from "../key-record.ts";

export const snapshotRecords = {
  snapshots: {
    type: "hash",
    of: ["<tenant>"],
    holds: "a tenant's snapshots",
    fields: {
      "<snapshot>": "its id, sandbox, host, size, number of files, method, job, date and expiry, as JSON",
    },
    expires: false,
    ends: "field: when the snapshot is removed, replaced or expired, or its tenant destroyed",
  },
  droppedSnapshots: {
    type: "set",
    of: ["<tenant>"],
    holds: "id of a removed snapshot whose files are still on their host",
    expires: false,
    ends: "member: when a worker of that host has removed the files",
  },
} as const satisfies Record<string, KeyRecord>;
