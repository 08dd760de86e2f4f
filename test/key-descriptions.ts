import type { redisKeys } from "@berth/protocol";

/** What the page of keys says of one. */
export interface KeyDescription {
  /** Redis' own type. */
  readonly type: string;
  readonly holds: string;
  /** When it expires, and who removes it. */
  readonly ends: string;
}

/** Of every key in `redisKeys`. docs/redis-keys.md is made from this. */
export const keyDescriptions: { readonly [name in keyof typeof redisKeys]: KeyDescription } = {
  lease: {
    type: "hash",
    holds:
      "worker, instance, epoch, deadline (Redis time, ms), length of the lease, whether it was inherited from a dead process, home host (once the workspace was opened), pool, last use to the minute, last trouble, how its set-up command ended, the parts of its key as they were given, whether it was destroyed, bytes in its workspace, workers that could not start it lately",
    ends: "when a sandbox that was destroyed has had no job for as long as its queue is kept (`forget.lua`); otherwise never, since the epoch must only grow",
  },
  leases: {
    type: "sorted set",
    holds: "sandbox key by deadline, for those held",
    ends: "member: on release; by the sweep after the lease expired",
  },
  pending: {
    type: "sorted set",
    holds: "sandbox key by when it was marked as having work",
    ends: "member: when a release, a cancellation or the sweep finds the queue empty",
  },
  approval: {
    type: "hash",
    holds:
      "state (waiting, approved, refused, expired), when it was asked for, when it expires, what the job would run and its digest, who decided and why",
    ends: "with the job; at the latest seven days after the decision, or after the time in which one was possible",
  },
  approvalsOf: {
    type: "sorted set",
    holds: "job id by when its approval expires",
    ends: "member: on a decision, when the job ends, when the job is taken after that time, or when the list is read",
  },
  approvalOwners: {
    type: "set",
    holds: "tenant, or `shared`",
    ends: "member: when the list is read and nothing of it waits",
  },
  events: {
    type: "stream",
    holds: "started, stdout, stderr, artifact, finished; nothing follows finished",
    ends: "a day after the job's end",
  },
  results: {
    type: "stream",
    holds:
      "one entry per finished job: `job`, `key`, and its result as `d`, or as `excerpt` if it is longer than 32 KiB",
    ends: "trimmed to about 100,000",
  },
  inbox: {
    type: "stream",
    holds: "the ends one client waits for, as in `berth:results`",
    ends: "a day after its last entry; trimmed to about 100,000; what was read, and all of it on close, by its client",
  },
  inboxWake: {
    type: "stream",
    holds: "one entry that ends that client's own waiting read",
    ends: "a minute after the last one",
  },
  worker: {
    type: "hash",
    holds: "which process speaks for the worker (instance, host, pid), and what it says of itself",
    ends: "three heartbeats or two leases; on stop",
  },
  workers: {
    type: "sorted set",
    holds: "worker by last heartbeat",
    ends: "member: on stop",
  },
  writes: {
    type: "hash",
    holds:
      "`run`, `refused`: Redis' run id and its count of refused writes when last seen; `since`: when it last began to accept all writes; `restarted`: when it was last seen to have restarted",
    ends: "never",
  },
  slotWrites: {
    type: "hash",
    holds: "on a cluster: as `berth:writes{fleet}`, of the node that has the tenant's slot",
    ends: "never",
  },
  job: {
    type: "hash",
    holds:
      "of the job (`<tenant>.<id>` where a tenant key submitted it): sandbox key, tenant, session, kind, when accepted, a mark of what it asks for, which attempt was added, which begun last and when, whether a cancellation was requested, bytes of its output so far, how it ended",
    ends: "a day after its end, or after the time for which it was due when it was cancelled before; an hour if nothing followed its acceptance",
  },
  sandboxOf: {
    type: "string",
    holds: "the key of the sandbox that a job id belongs to, for those who know only the id",
    ends: "with the job's hash",
  },
  unfinished: {
    type: "sorted set",
    holds: "job id by when it was added",
    ends: "member: with the job's terminal record; by the audit, which writes one, or finds that no record of the job is left",
  },
  unfinishedOf: {
    type: "sorted set",
    holds: "one tenant's job ids by when they were added, in its own sandboxes or in the shared one",
    ends: "member: in the step that writes the terminal record",
  },
  staged: {
    type: "string",
    holds: "a request too large for the queue, as JSON",
    ends: "an hour until its job is accepted; then with the job's terminal record; a minute after a cancellation",
  },
  dueOrder: {
    type: "sorted set",
    holds: "delayed jobs of one sandbox by due time, and by acceptance where due times are equal",
    ends: "member: when the job is handed on; all a day after the last due time",
  },
  sandboxes: {
    type: "sorted set",
    holds: "every sandbox key in use, by last use to the minute",
    ends: "member: when a destroyed sandbox is given up without a new job (`forget-destroyed.lua`)",
  },
  sandboxesOf: {
    type: "sorted set",
    holds: "the tenant's sandbox keys, by last use to the minute",
    ends: "member: as in `berth:sandboxes`",
  },
  queues: {
    type: "sorted set",
    holds: "sandbox key whose queue has keys, by last use to the minute",
    ends: "member: when the sweep removes the queue",
  },
  resultBytes: {
    type: "hash",
    holds: "bytes of the tenant's ended jobs' events, by the hour (since 1970) in which they expire",
    ends: "field: when that hour is over; all 25 hours after the last end",
  },
  workspacesOf: {
    type: "hash",
    holds:
      "sandbox key to the bytes in its workspace, and `/tools` or `/agent.NAME` to those in a directory that sandboxes share, as last measured; `*`: their sum",
    ends: "field: when the sandbox is destroyed; of a shared directory: never",
  },
  paused: {
    type: "set",
    holds: "tenants that are paused",
    ends: "member: on resume",
  },
  grants: {
    type: "set",
    holds:
      "`profile:<name>` and `pool:<name>` that the tenant may use besides `default`, and `peer:<tenant>` whose files it may read",
    ends: "member: when revoked",
  },
  tools: {
    type: "hash",
    holds: "custom tools by name: version, time, who, and the definition",
    ends: "member: when the tool is removed; at most 256",
  },
  profiles: {
    type: "hash",
    holds: "layer id to its settings as JSON, with version, time and who set it",
    ends: "member: when the layer is removed; at most 10,000 layers",
  },
  tenantName: {
    type: "string",
    holds: "the name that a tenant's id was made of, where the id is another text",
    ends: "never; one for each such tenant",
  },
  sharedHomes: {
    type: "hash",
    holds: "`tools` or `agent.NAME` to the host that has them, under local storage",
    ends: "never",
  },
  profilesVersion: { type: "string", holds: "version of the latest change of any layer", ends: "never" },
  profileHistory: {
    type: "list",
    holds: "what one layer was, the latest first: as in `berth:profiles{profiles}`",
    ends: "trimmed to 50; 90 days after the layer was removed",
  },
  ceilings: {
    type: "hash",
    holds: "`fleet` and `tenant.<tenant>` to the ceilings that the layer changes, as JSON",
    ends: "field: when the layer changes none any more",
  },
  delayedOf: {
    type: "sorted set",
    holds:
      "`<job id> <bytes>` of the tenant's jobs that wait for their time, by when their acceptance is forgotten",
    ends: "member: when the job is added to its queue or has ended; an expired one with the tenant's next submission",
  },
  stagedOf: {
    type: "sorted set",
    holds: "`<job id> <bytes>` of the tenant's requests beside the queue that no job was accepted for yet",
    ends: "member: when the job is accepted or refused; two hours after the last one",
  },
  heldOf: {
    type: "sorted set",
    holds:
      "the tenant's sandboxes that workers hold, by when they were taken; also those of workers that died",
    ends: "member: on release; when the tenant is at its ceiling, those that are not held",
  },
  snapshots: {
    type: "hash",
    holds:
      "name to the snapshot's id, sandbox, host, size, number of files, method, job, date and expiry, as JSON",
    ends: "field: when the snapshot is removed, replaced or expired, or its tenant destroyed",
  },
  droppedSnapshots: {
    type: "set",
    holds: "id of a removed snapshot whose files are still on their host",
    ends: "member: when a worker of that host has removed the files",
  },
  secrets: {
    type: "hash",
    holds: "a tenant's secrets by name, each sealed with AES-256-GCM",
    ends: "member: when the secret is removed; at most 1,000",
  },
  secretTenants: {
    type: "set",
    holds: "tenants that have or had secrets, for sealing all of them anew",
    ends: "never; one member for each tenant that ever had a secret",
  },
  waitingBytes: {
    type: "string",
    holds: "bytes of the tenant's requests that were accepted and have not ended",
    ends: "with the last of them",
  },
  usage: {
    type: "hash",
    holds:
      "number of the day since 1970 to what the tenant's jobs used on it: jobs, failed, cpu in microseconds, wall time in ms, peak memory in KiB, bytes in, bytes out",
    ends: "field: after BERTH_USAGE_DAYS; the key that long after the last day on which something was used",
  },
  usageTenants: {
    type: "sorted set",
    holds: "tenant by the last day on which its jobs used something, as the day's number since 1970",
    ends: "member: BERTH_USAGE_DAYS later",
  },
  layout: {
    type: "string",
    holds:
      "which version of these names and records is in this Redis. A program of another version refuses to use it",
    ends: "never",
  },
  settings: {
    type: "hash",
    holds:
      "maxWaitingPerSandbox, maxWaitingInFleet, fullAtPercent. Written by workers while Redis is nearly full: `fullUntil` (Redis time, ms), `usedBytes`, `fullFromBytes`",
    ends: "never; those of the workers when there is room",
  },
  room: {
    type: "hash",
    holds:
      "worker process to how many sandboxes it gives up for offers in that queue, lately and in all, until when that is good, and how many sandboxes the tenants of its other busy ones hold",
    ends: "a minute after the last; field: when the slots are used",
  },
  turns: {
    type: "sorted set",
    holds:
      "tenant to the round in which its next offer in that queue is taken; only of tenants that had a turn in this round, or wait",
    ends: "member: when that round begins; the key when an offer finds its queue empty, or a day after the last offer",
  },
  wake: {
    type: "sorted set",
    holds: "sandboxes of one worker process that were given a job; that process pops them",
    ends: "an hour after the last one",
  },
  outbox: {
    type: "stream",
    holds: "on a cluster: what the tenant's scripts have to write to other slots",
    ends: "entry: when delivered, by who ran the script or by the sweep",
  },
  outboxes: {
    type: "sorted set",
    holds: "on a cluster: tenant that may have an outbox, by when that was noted",
    ends: "never",
  },
  control: {
    type: "channel",
    holds: "cancel, pause, drain, ping",
    ends: "—",
  },
  answer: {
    type: "string",
    holds: "a worker's answer to a ping",
    ends: "30 s; when read",
  },
  artifact: {
    type: "hash",
    holds: "path, size, sha256, mime type, expiry, whose it is, where its bytes are",
    ends: "by the sweep after it expired; when replaced or removed",
  },
  artifactBytes: {
    type: "string",
    holds: "the bytes of small artifacts with that content",
    ends: "with the last artifact that has it; by itself when that one expires",
  },
  artifactExpiry: {
    type: "sorted set",
    holds: "artifact id by when it expires",
    ends: "member: with the artifact",
  },
  artifactBlob: {
    type: "hash",
    holds: "the file that has a content, and how many artifacts refer to it",
    ends: "with the last of them",
  },
  artifactGarbage: {
    type: "sorted set",
    holds:
      "file of one artifact directory by when it may be removed: being written, or no longer referred to",
    ends: "member: when adopted by an artifact, or removed",
  },
  artifactUsage: {
    type: "hash",
    holds: "`<tenant>` to bytes, `<tenant>/count` to number of its artifacts",
    ends: "field: with the tenant's last artifact",
  },
  persisted: {
    type: "hash",
    holds: "path to artifact id, of one conversation",
    ends: "field: with the artifact; all by a destroy job",
  },
  conversations: {
    type: "set",
    holds: "those of the hashes above that are not empty",
    ends: "member: with the last path persisted there",
  },
  schedules: {
    type: "hash",
    holds: "schedule id (`<tenant>.<id>` where a tenant key chose it) to its specification and state",
    ends: "field: when removed",
  },
  schedulesOf: {
    type: "set",
    holds: "ids of the tenant's schedules",
    ends: "member: when the schedule is removed",
  },
  batchesOf: {
    type: "sorted set",
    holds: "id of the owner's batches by when they were made; of admin keys' under no name",
    ends: "member: when found gone; the newest 1,000",
  },
  batchesOpenOf: {
    type: "sorted set",
    holds: "id of the owner's batches that are not over by when they were made",
    ends: "member: at the batch's end; one whose batch has expired when the owner is at its ceiling",
  },
  deadOf: {
    type: "sorted set",
    holds: "id of the tenant's dead letters by when they were added",
    ends: "member: with the letter; the oldest when there are more than the tenant's ceiling",
  },
  schedulesDue: {
    type: "sorted set",
    holds: "schedule id by when it is to be looked at next",
    ends: "member: when removed",
  },
  apiKey: {
    type: "hash",
    holds: "role, tenant, name, sha256 of the secret, profiles, pools, limits, expiry, last use",
    ends: "on revocation; a week after the key expired",
  },
  apiKeys: {
    type: "sorted set",
    holds: "key id by when it was made",
    ends: "member: on revocation, or when found expired",
  },
  apiKeysMade: {
    type: "string",
    holds:
      "when the first key was made or configured; while it is there no gateway is open to callers without a key",
    ends: "never",
  },
  audit: {
    type: "stream",
    holds: "who did which administrative action to what",
    ends: "trimmed to about 10,000",
  },
  egressLog: {
    type: "stream",
    holds: "what the owner's sandboxes sent and received, by host, with the jobs that ran",
    ends: "trimmed to about 1,000; thirty days after the last entry",
  },
  idempotency: {
    type: "string",
    holds: "fingerprint of the request that came with an Idempotency-Key",
    ends: "a day",
  },
  batch: {
    type: "hash",
    holds: "owner, state, counts, webhook of one batch",
    ends: "a week after it was last looked at; two days after its end",
  },
  batchDone: {
    type: "string (bits)",
    holds: "which of the batch's jobs have ended, by index",
    ends: "with the batch",
  },
  batchEnds: {
    type: "list",
    holds: "`<index> <sandbox key>` in the order of the ends",
    ends: "with the batch",
  },
  batchRefused: {
    type: "hash",
    holds: "index to what was wrong with an order that was not accepted",
    ends: "with the batch",
  },
  batches: {
    type: "sorted set",
    holds: "batch id by when it was made",
    ends: "member: when found gone; the newest 10,000",
  },
  batchesOpen: {
    type: "sorted set",
    holds: "batch that is not over, by when to look at it next",
    ends: "member: at its end",
  },
  webhooksOf: {
    type: "sorted set",
    holds: "one owner's batches whose webhooks are to be called, by when",
    ends: "member: delivered, or given up",
  },
  webhookOwners: {
    type: "sorted set",
    holds: "owners of such batches, by when the next call is due",
    ends: "member: with the last call",
  },
  webhookHold: {
    type: "string",
    holds: "a gateway calls webhooks of that owner",
    ends: "with the calls; 60 s",
  },
  webhookSecret: {
    type: "string",
    holds: "what signing secrets are derived from",
    ends: "never",
  },
  boardSession: {
    type: "string",
    holds: "id of the key that a user logged in to the dashboard with; of the configured one also its hash",
    ends: "twelve hours; on logout",
  },
};
