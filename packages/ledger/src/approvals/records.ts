import type { KeyRecord } from "../key-record.ts";

export const approvalRecords = {
  approval: {
    type: "hash",
    of: ["<tenant>", "<job id>"],
    holds: "what the job would run, and what was decided",
    fields: {
      state: "waiting, approved, refused or expired",
      askedAtMs: "when it was asked for (Redis time, ms)",
      expiresAtMs: "when it expires",
      what: "what an administrator sees of it, as JSON",
      whole: "all that the job would run",
      digest: "of all that decides what runs",
      by: "who decided",
      reason: "why",
      decidedAtMs: "when",
    },
    expires: true,
    ends: "with the job; at the latest seven days after the decision, or after the time in which one was possible",
  },
  approvalsOf: {
    type: "sorted set",
    of: ["<owner>"],
    holds: "job id by when its approval expires",
    expires: false,
    ends: "member: on a decision, when the job ends, when the job is taken after that time, or when the list is read",
  },
  approvalOwners: {
    type: "set",
    holds: "tenant, or `shared`",
    expires: false,
    ends: "member: when the list is read and nothing of it waits",
  },
} as const satisfies Record<string, KeyRecord>;
