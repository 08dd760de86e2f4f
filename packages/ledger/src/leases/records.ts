import type { KeyRecord } from "../key-record.ts";

const writesFields = {
  run: "Redis' run id when last seen",
  refused: "its count of refused writes when last seen",
  since: "when it last began to accept all writes (Redis time, ms)",
  restarted: "when it was last seen to have restarted, 0 for never",
} as const;

export const leaseRecords = {
  lease: {
    type: "hash",
    of: ["<tenant>"],
    holds: "who holds the sandbox, until when, and what later holders have to know of it",
    fields: {
      worker: "worker that holds it, empty for none",
      instance: "process of that worker",
      epoch: "fencing token: each holder's is higher than ever before",
      deadline: "when the lease ends (Redis time, ms)",
      length: "of the lease, in ms",
      inherited: "it was taken from a dead process before its deadline",
      home: "host that has its workspace, once it was opened; none where storage is shared",
      pool: "pool that its offers are made in",
      used: "its last use, to the minute",
      trouble: "why its sandbox could not be started",
      failed: "workers that could not start it lately, by when, as JSON",
      setup: "how its set-up command ended, as JSON",
      names: "the parts of its key as they were given, as JSON",
      destroyed: "when its workspace was removed, unless something was started since",
    },
    expires: false,
    ends: "when a sandbox that was destroyed has had no job for as long as its queue is kept (`forget.lua`); otherwise never, since the epoch must only grow",
  },
  leases: {
    type: "sorted set",
    holds: "sandbox key by deadline, for those held",
    expires: false,
    ends: "member: on release; by the sweep after the lease expired",
  },
  pending: {
    type: "sorted set",
    holds: "sandbox key by when it was marked as having work",
    expires: false,
    ends: "member: when a release, a cancellation or the sweep finds the queue empty",
  },
  heldOf: {
    type: "sorted set",
    of: ["<tenant>"],
    holds:
      "the tenant's sandboxes that workers hold, by when they were taken; also those of workers that died",
    expires: false,
    ends: "member: on release; when the tenant is at its ceiling, those that are not held",
  },
  grants: {
    type: "set",
    of: ["<tenant>"],
    holds:
      "`profile:<name>` and `pool:<name>` that the tenant may use besides `default`, and `peer:<tenant>` whose files it may read",
    expires: false,
    ends: "member: when revoked",
  },
  sharedHomes: {
    type: "hash",
    of: ["<tenant>"],
    holds: "where the directories are that sandboxes share, under local storage",
    fields: { tools: "host of the tenant's tools", "agent.<name>": "host of that agent's directory" },
    expires: false,
    ends: "never",
  },
  writes: {
    type: "hash",
    holds: "since when Redis accepts all writes, and by what that is known",
    fields: writesFields,
    expires: false,
    ends: "never",
  },
  slotWrites: {
    type: "hash",
    of: ["<tenant>"],
    holds: "on a cluster: as `berth:writes{fleet}`, of the node that has the tenant's slot",
    fields: writesFields,
    expires: false,
    ends: "never",
  },
  workspacesOf: {
    type: "hash",
    of: ["<tenant>"],
    holds: "bytes in the tenant's workspaces, as last measured",
    fields: {
      "<sandbox key>": "bytes in its workspace",
      "/tools": "bytes in the tenant's tools",
      "/agent.<name>": "bytes in that agent's directory",
      "*": "the sum of all",
    },
    expires: false,
    ends: "field: when the sandbox is destroyed; of a shared directory: never",
  },
} as const satisfies Record<string, KeyRecord>;
