import type { KeyRecord } from "../key-record.ts";

export const toolRecords = {
  tools: {
    type: "hash",
    holds: "custom tools",
    fields: { "<tool>": "version, time, who set it, and its definition, as JSON" },
    expires: false,
    ends: "member: when the tool is removed; at most 256",
  },
} as const satisfies Record<string, KeyRecord>;
