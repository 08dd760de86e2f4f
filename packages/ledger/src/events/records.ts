import type { KeyRecord } from "../key-record.ts";

export const eventRecords = {
  events: {
    type: "stream",
    of: ["<tenant>", "<job id>"],
    holds: "started, stdout, stderr, artifact, finished; nothing follows finished",
    expires: true,
    ends: "a day after the job's end",
  },
  results: {
    type: "stream",
    holds:
      "one entry per finished job: `job`, `key`, and its result as `d`, or as `excerpt` if it is longer than 32 KiB",
    expires: false,
    ends: "trimmed to about 100,000",
  },
  inbox: {
    type: "stream",
    of: ["<client>"],
    holds: "the ends one client waits for, as in `berth:results`",
    expires: true,
    ends: "a day after its last entry; trimmed to about 100,000; what was read, and all of it on close, by its client",
  },
  inboxWake: {
    type: "stream",
    of: ["<client>"],
    holds: "one entry that ends that client's own waiting read",
    expires: true,
    ends: "a minute after the last one",
  },
  staged: {
    type: "string",
    of: ["<tenant>", "<job id>"],
    holds: "a request too large for the queue, as JSON",
    expires: true,
    ends: "an hour until its job is accepted; then with the job's terminal record; a minute after a cancellation",
  },
  stagedOf: {
    type: "sorted set",
    of: ["<owner>", "<tenant>"],
    holds: "`<job id> <bytes>` of the tenant's requests beside the queue that no job was accepted for yet",
    expires: true,
    ends: "member: when the job is accepted or refused; two hours after the last one",
  },
  resultBytes: {
    type: "hash",
    of: ["<owner>", "<tenant>"],
    holds: "bytes of the tenant's ended jobs' events",
    fields: { "<hour>": "the hour's number since 1970 to the bytes that expire in it" },
    expires: true,
    ends: "field: when that hour is over; all 25 hours after the last end",
  },
} as const satisfies Record<string, KeyRecord>;
