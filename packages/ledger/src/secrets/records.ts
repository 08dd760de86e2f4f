import type { KeyRecord } from "../key-record.ts";

export const secretRecords = {
  secrets: {
    type: "hash",
    of: ["<tenant>"],
    holds: "a tenant's secrets",
    fields: { "<secret>": "its value, sealed with AES-256-GCM" },
    expires: false,
    ends: "member: when the secret is removed; at most 1,000",
  },
  secretTenants: {
    type: "set",
    holds: "tenants that have or had secrets, for sealing all of them anew",
    expires: false,
    ends: "never; one member for each tenant that ever had a secret",
  },
} as const satisfies Record<string, KeyRecord>;
