import type { KeyRecord } from "../key-record.ts";

export const queueRecords = {
  queues: {
    type: "sorted set",
    holds: "sandbox key whose queue has keys, by last use to the minute",
    expires: false,
    ends: "member: when the sweep removes the queue",
  },
  waitingBytes: {
    type: "string",
    of: ["<owner>", "<tenant>"],
    holds: "bytes of the tenant's requests that were accepted and have not ended",
    expires: false,
    ends: "with the last of them",
  },
  delayedOf: {
    type: "sorted set",
    of: ["<owner>", "<tenant>"],
    holds:
      "`<job id> <bytes>` of the tenant's jobs that wait for their time, by when their acceptance is forgotten",
    expires: false,
    ends: "member: when the job is added to its queue or has ended; an expired one with the tenant's next submission",
  },
  room: {
    type: "hash",
    of: ["<offers>"],
    holds: "how many sandboxes workers give up for the offers in that queue",
    fields: {
      "<instance>":
        "of that worker process: how many lately and in all, until when that is valid, and how many sandboxes the tenants of its other busy ones hold",
    },
    expires: true,
    ends: "a minute after the last; field: when the slots are used",
  },
  turns: {
    type: "sorted set",
    of: ["<offers>"],
    holds:
      "tenant to the round in which its next offer in that queue is taken; only of tenants that had a turn in this round, or wait",
    expires: true,
    ends: "member: when that round begins; the key when an offer finds its queue empty, or a day after the last offer",
  },
  waiting: {
    type: "sorted set",
    of: ["<instance>"],
    holds:
      "one member, which ends the call by which that worker process waits for offers and for what is due",
    expires: true,
    ends: "when popped, at once",
  },
  wake: {
    type: "sorted set",
    of: ["<instance>"],
    holds: "sandboxes of one worker process that were given a job; that process pops them",
    expires: true,
    ends: "an hour after the last one",
  },
  outbox: {
    type: "stream",
    of: ["<tenant>"],
    holds: "on a cluster: what the tenant's scripts have to write to other slots",
    expires: false,
    ends: "entry: when the script's caller or the sweep has delivered it",
  },
  outboxes: {
    type: "sorted set",
    holds: "on a cluster: tenant that may have an outbox, by when that was noted",
    expires: false,
    ends: "never",
  },
} as const satisfies Record<string, KeyRecord>;
