import { type SandboxKey, type TenantId, tenantOf } from "./ids.ts";

/** Prefix of one sandbox's keys. The tenant is in braces: a cluster keeps its keys in one hash slot, where one script may use all of them. */
function own(key: SandboxKey): string {
  const tenant = tenantOf(key);
  return `berth:{${tenant}}${key.slice(tenant.length)}`;
}

/** BullMQ's prefix of the fleet's own queues. */
export const fleetQueuePrefix = "berth:queue{queue}";

/**
 * The names of all keys in Redis; no other file spells one. docs/redis-keys.md lists them with type, owner and expiry. Keys that one script
 * changes together have the same name in braces.
 */
export const redisKeys = {
  lease: (key: SandboxKey): string => `${own(key)}:lease`,
  /** Sorted set: sandbox key by its lease's deadline, in milliseconds of Redis time. */
  leases: "berth:leases{fleet}",
  /** Sorted set: sandbox key by when it was marked; it has, or may have, work. */
  pending: "berth:pending{fleet}",
  /** Stream: what happened to one job. Its last entry is the terminal record, once there is one. */
  events: (key: SandboxKey, jobId: string): string => `${own(key)}:events:${jobId}`,
  /** Stream: one entry per finished job, for consumer groups. */
  results: "berth:results",
  /** Stream: what one client waits for. */
  inbox: (client: string): string => `berth:inbox:{${client}}`,
  /** Stream: one entry that ends that client's own waiting read. */
  inboxWake: (client: string): string => `berth:inbox:{${client}}:wake`,
  /** Hash: one worker's status. Expires when its heartbeats stop. */
  worker: (worker: string): string => `berth:worker{fleet}:${worker}`,
  /** Sorted set: worker by its last heartbeat. */
  workers: "berth:workers{fleet}",
  /** Hash: since when Redis has refused no write, and the counters that show it. */
  writes: "berth:writes{fleet}",
  /** Hash: the same for the node that has one tenant's slot, on a cluster. */
  slotWrites: (tenant: string): string => `berth:{${tenant}}:writes`,
  /** Hash: which sandbox a job belongs to, what it is, how far it was handed on. From acceptance to a day after its end. */
  job: (key: SandboxKey, jobId: string): string => `berth:{${tenantOf(key)}}:job:${jobId}`,
  /** String: the key of a job's sandbox, for callers that have only the job's id. Lives as long as the hash above. */
  sandboxOf: (jobId: string): string => `berth:sandbox-of:${jobId}`,
  /** Sorted set: job id by when it was added to its sandbox's queue; until its terminal record. */
  unfinished: "berth:unfinished",
  /** Sorted set: the same of one tenant, in its own sandboxes or in the one that all share. */
  unfinishedOf: (owner: string, tenant: string): string => `berth:{${owner}}:unfinished:${tenant}`,
  /** String: a request too large for the queue. */
  staged: (key: SandboxKey, jobId: string): string => `${own(key)}:staged:${jobId}`,
  /** Sorted set: delayed jobs of one sandbox by due time; members begin with when they were accepted. */
  dueOrder: (key: SandboxKey): string => `${own(key)}:due-order`,
  /** Sorted set: every sandbox that was used and not destroyed, by its last use. */
  sandboxes: "berth:sandboxes",
  /** Sorted set: the same of one tenant, by when a producer last asked about it. */
  sandboxesOf: (tenant: TenantId): string => `berth:{${tenant}}:sandboxes`,
  /** Sorted set: sandbox key whose queue has keys in Redis, by its last use. */
  queues: "berth:queues",
  /** Hash: what a job that needs an approval would run, and what was decided. */
  approval: (key: SandboxKey, jobId: string): string => `berth:{${tenantOf(key)}}:approval:${jobId}`,
  /** Sorted set: id of a job that waits for an approval, by when that expires. */
  approvalsOf: (owner: string): string => `berth:{${owner}}:approvals`,
  /** Set: owners of sandboxes with jobs that may wait for an approval. */
  approvalOwners: "berth:approval-owners",
  /** Hash: custom tools by name. */
  tools: "berth:tools{tools}",
  /** Set: tenants that are paused. */
  paused: "berth:paused{fleet}",
  /** Set: `profile:<name>` and `pool:<name>` that the tenant may use besides `default`, and `peer:<tenant>` whose files it may read. */
  grants: (tenant: TenantId): string => `berth:grants:${tenant}`,
  /** String: the name that a tenant's id was made of, where the id is another text. */
  tenantName: (tenant: string): string => `berth:{${tenant}}:name`,
  /** Hash: `tools` or `agent.NAME` to the host that has them, under local storage. */
  sharedHomes: (tenant: TenantId): string => `berth:{${tenant}}:shared-homes`,
  /** Hash: the live layers of the profiles, by their ids. */
  profiles: "berth:profiles{profiles}",
  /** String: the version of the latest change of a layer. */
  profilesVersion: "berth:profiles-version{profiles}",
  /** List: what one layer was, the latest first. */
  profileHistory: (layer: string): string => `berth:profile-history{profiles}:${layer}`,
  /** Hash: the ceilings that the layers `fleet` and `tenant.ID` change, by layer. */
  ceilings: "berth:ceilings{profiles}",
  /** Sorted set: `<job id> <bytes>` of one tenant's jobs that wait for their time, by when their acceptance is forgotten. */
  delayedOf: (owner: string, tenant: string): string => `berth:{${owner}}:delayed:${tenant}`,
  /** Sorted set: `<job id> <bytes>` of one tenant's requests beside the queue that no job was accepted for, by when they expire. */
  stagedOf: (owner: string, tenant: string): string => `berth:{${owner}}:staged-of:${tenant}`,
  /** Sorted set: a tenant's sandboxes that workers hold, or held when their leases ran out, by when they were taken. */
  heldOf: (tenant: string): string => `berth:{${tenant}}:held`,
  /** Hash: a tenant's snapshots by name. */
  snapshots: (tenant: string): string => `berth:{${tenant}}:snapshots`,
  /** Set: ids of snapshots that were removed, until their host has removed the files. */
  droppedSnapshots: (tenant: string): string => `berth:{${tenant}}:dropped-snapshots`,
  /** Hash: a tenant's sealed secrets by name. */
  secrets: (tenant: TenantId): string => `berth:{${tenant}}:secrets`,
  /** Set: tenants that have or had secrets. */
  secretTenants: "berth:secret-tenants",
  /** String: bytes of a tenant's requests that have not ended, in its own sandboxes or in the one that all share. */
  waitingBytes: (owner: string, tenant: string): string => `berth:{${owner}}:waiting-bytes:${tenant}`,
  /** Hash: bytes of a tenant's ended jobs' events by the hour in which they expire, in its own sandboxes or in the one that all share. */
  resultBytes: (owner: string, tenant: string): string => `berth:{${owner}}:result-bytes:${tenant}`,
  /** Hash: bytes in each sandbox's workspace, as last measured; and their sum. */
  workspacesOf: (tenant: string): string => `berth:{${tenant}}:workspaces`,
  /** Hash: what a tenant's jobs used, by day; in its own sandboxes or in the one that all share. */
  usage: (owner: string, tenant: string): string => `berth:{${owner}}:usage:${tenant}`,
  /** Sorted set: tenant by the last day on which its jobs used something. */
  usageTenants: "berth:usage-tenants{fleet}",
  /** String: which version of this list the keys of this Redis are of. */
  layout: "berth:layout",
  /** Hash: what the whole fleet agrees on, such as its limits. */
  settings: "berth:settings",
  /** Hash: worker process to how many sandboxes it gives up for the offers in that queue, and which more it could. */
  room: (offers: string): string => `berth:yields:${offers}`,
  /** Sorted set: tenant by the round in which its next offer in that queue is taken. In the hash slot of the queue. */
  turns: (offers: string): string => `berth:turns{queue}:${offers}`,
  /** Sorted set: ends the call by which one worker process waits for the fleet's queues. In their hash slot. */
  waiting: (instance: string): string => `berth:waiting{queue}:${instance}`,
  /** Sorted set: sandboxes of one worker process that were given a job, for that process to pop. */
  wake: (instance: string): string => `berth:wake:${instance}`,
  /** Stream: on a cluster, what the scripts of one tenant have to write to other slots. */
  outbox: (tenant: string): string => `berth:{${tenant}}:outbox`,
  /** Sorted set: on a cluster, tenant that may have an outbox, by when that was noted. */
  outboxes: "berth:outboxes",
  /** Channel: control messages to all workers or to one. */
  control: "berth:control",
  /** String: one worker's answer to one message. */
  answer: (id: string): string => `berth:answer:${id}`,
  /** Hash: one artifact's path, size, hash and where its bytes are. */
  artifact: (id: string): string => `berth:artifact{artifacts}:${id}`,
  /** String: a small artifact's bytes. */
  artifactBytes: (sha256: string): string => `berth:artifact-bytes{artifacts}:${sha256}`,
  /** Sorted set: artifact id by when it expires. */
  artifactExpiry: "berth:artifact-expiry{artifacts}",
  /** Hash: which file has a content's bytes in one place, and how many artifacts refer to it. */
  artifactBlob: (place: string, sha256: string): string =>
    `berth:artifact-blob{artifacts}:${place}:${sha256}`,
  /** Sorted set: file in one place by when it may be removed. What is not adopted until then never will be. */
  artifactGarbage: (place: string): string => `berth:artifact-garbage{artifacts}:${place}`,
  /** Hash: bytes and number of artifacts by tenant. */
  artifactUsage: "berth:artifact-usage{artifacts}",
  /** Hash: path to artifact id, of one conversation. The tenant is named too: some sandboxes have several. */
  persisted: (key: SandboxKey, tenant: string, agent: string, session: string): string =>
    `berth:persisted{artifacts}:${key}:${tenant}:${agent}:${session}`,
  /** Set: those hashes of one sandbox that have something. */
  conversations: (key: SandboxKey): string => `berth:conversations{artifacts}:${key}`,
  /** Hash: a schedule's id to its specification and state. */
  schedules: "berth:schedules{schedules}",
  /** Set: ids of one tenant's schedules. */
  schedulesOf: (tenant: string): string => `berth:schedules-of{schedules}:${tenant}`,
  /** Sorted set: schedule id by when it is to be looked at next. */
  schedulesDue: "berth:schedules-due{schedules}",
  /** Hash: one key for the gateway: whose it is, its secret's hash, its limits. */
  apiKey: (id: string): string => `berth:api-key{api-keys}:${id}`,
  /** Sorted set: id of a key for the gateway by when it was made. */
  apiKeys: "berth:api-keys{api-keys}",
  /** String: when the gateway's first key was made. As long as it is there, no gateway answers without a key. */
  apiKeysMade: "berth:api-keys-made{api-keys}",
  /** Stream: what administrators did. */
  audit: "berth:audit",
  /** Stream: which hosts the sandboxes of one tenant, or the one that all share, exchanged how many bytes with. */
  egressLog: (owner: string): string => `berth:{${owner}}:egress`,
  /** String: fingerprint of the request that an Idempotency-Key came with. */
  idempotency: (hash: string): string => `berth:idempotency:${hash}`,
  /** Hash: one batch's owner, state and counts. */
  batch: (id: string): string => `berth:batch{batches}:${id}`,
  /** String, as bits: which jobs of a batch have ended, by their index. */
  batchDone: (id: string): string => `berth:batch-done{batches}:${id}`,
  /** List: `<index> <sandbox key>` of a batch's jobs in the order of their ends. */
  batchEnds: (id: string): string => `berth:batch-ends{batches}:${id}`,
  /** Hash: index to what was wrong, of a batch's orders that were not accepted. */
  batchRefused: (id: string): string => `berth:batch-refused{batches}:${id}`,
  /** Sorted set: batch id by when it was made. */
  batches: "berth:batches{batches}",
  /** Sorted set: id of one owner's batches by when they were made. */
  batchesOf: (owner: string): string => `berth:batches-of{batches}:${owner}`,
  /** Sorted set: id of one owner's batches that are not over by when they were made. */
  batchesOpenOf: (owner: string): string => `berth:batches-open-of{batches}:${owner}`,
  /** Sorted set: id of one tenant's dead letters by when they were added. */
  deadOf: (tenant: string): string => `berth:dead-of{queue}:${tenant}`,
  /** Sorted set: id of a batch that is not over, by when a gateway is to look at it next. */
  batchesOpen: "berth:batches-open{batches}",
  /** Sorted set: id of one owner's batch whose webhook is to be called, by when. */
  webhooksOf: (owner: string): string => `berth:webhooks-of{batches}:${owner}`,
  /** Sorted set: owner of such batches, by when its next call is due. */
  webhookOwners: "berth:webhook-owners{batches}",
  /** String: a gateway calls webhooks of that owner. */
  webhookHold: (owner: string): string => `berth:webhook-hold{batches}:${owner}`,
  /** String: what webhooks' signing secrets are derived from. */
  webhookSecret: "berth:webhook-secret",
  /** String: who is logged in to the dashboard; named by the hash of the session's cookie. */
  boardSession: (hash: string): string => `berth:board-session:${hash}`,
} as const;

/** BullMQ's prefix of one sandbox's queue. */
export function queuePrefix(key: SandboxKey): string {
  return own(key);
}
