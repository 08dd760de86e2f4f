import type { KeyRecord } from "../key-record.ts";

export const apiKeyRecords = {
  apiKey: {
    type: "hash",
    of: ["<key id>"],
    holds: "role and tenant of the key, its secret's hash, what it may use",
    fields: {
      role: "admin or tenant",
      tenant: "the tenant of a tenant key",
      agent: "agent of every job that it submits",
      profiles: "profiles that it may use besides `default`",
      pools: "pools that it may use besides `default`",
      settings: "layer that tightens each of its jobs, as JSON",
      name: "what people call it",
      sha256: "of its secret",
      createdAtMs: "when it was made",
      expiresAtMs: "when it expires",
      rate: "most requests per second at one gateway",
      bodyBytes: "most bytes of a request",
      usedAtMs: "its last use, to the minute",
    },
    expires: "may",
    ends: "on revocation; a week after the key expired",
  },
  apiKeys: {
    type: "sorted set",
    holds: "key id by when it was made",
    expires: false,
    ends: "member: on revocation, or when found expired",
  },
  apiKeysMade: {
    type: "string",
    holds:
      "when the first key was made or configured; while it is there no gateway is open to callers without a key",
    expires: false,
    ends: "never",
  },
} as const satisfies Record<string, KeyRecord>;
