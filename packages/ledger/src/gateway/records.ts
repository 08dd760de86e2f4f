import type { KeyRecord } from "../key-record.ts";

export const gatewayRecords = {
  audit: {
    type: "stream",
    holds: "who did which administrative action to what",
    expires: false,
    ends: "trimmed to about 10,000",
  },
  idempotency: {
    type: "string",
    of: ["<hash>"],
    holds: "fingerprint of the request that came with an Idempotency-Key",
    expires: true,
    ends: "a day",
  },
  webhookSecret: {
    type: "string",
    holds: "what signing secrets are derived from",
    expires: false,
    ends: "never",
  },
  boardSession: {
    type: "string",
    of: ["<hash>"],
    holds: "id of the key that a user logged in to the dashboard with; of the configured one also its hash",
    expires: true,
    ends: "twelve hours; on logout",
  },
} as const satisfies Record<string, KeyRecord>;
