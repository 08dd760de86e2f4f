import type { KeyRecord } from "../key-record.ts";

export const egressRecords = {
  egressLog: {
    type: "stream",
    of: ["<owner>"],
    holds: "what the owner's sandboxes sent and received, by host, with the jobs that ran",
    expires: true,
    ends: "trimmed to about 1,000; thirty days after the last entry",
  },
} as const satisfies Record<string, KeyRecord>;
