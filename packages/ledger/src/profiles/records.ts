import type { KeyRecord } from "../key-record.ts";

export const profileRecords = {
  profiles: {
    type: "hash",
    holds: "the live layers of the profiles",
    fields: { "<layer>": "its settings, version, time and who set it, as JSON" },
    expires: false,
    ends: "member: when the layer is removed; at most 10,000 layers",
  },
  profilesVersion: {
    type: "string",
    holds: "version of the latest change of any layer",
    expires: false,
    ends: "never",
  },
  profileHistory: {
    type: "list",
    of: ["<layer>"],
    holds: "what one layer was, the latest first: as in `berth:profiles{profiles}`",
    expires: "may",
    ends: "trimmed to 50; 90 days after the layer was removed",
  },
  ceilings: {
    type: "hash",
    holds: "which ceilings the live layers change",
    fields: {
      fleet: "ceilings of the layer `fleet`, as JSON",
      "tenant.<tenant>": "ceilings of the tenant's layer, as JSON",
    },
    expires: false,
    ends: "field: when the layer changes none any more",
  },
} as const satisfies Record<string, KeyRecord>;
