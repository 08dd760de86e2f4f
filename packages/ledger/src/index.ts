export type { Approval, ApprovalState, Decided, WholeApproval } from "./approvals/approvals.ts";
export { Approvals } from "./approvals/approvals.ts";
export type { ArtifactLimits } from "./artifacts/artifact-limits.ts";
export type { ArtifactMeta } from "./artifacts/artifact-reader.ts";
export { ArtifactReader } from "./artifacts/artifact-reader.ts";
export type {
  ArtifactHolder,
  ArtifactOwner,
  PutAnswer,
  PutOptions,
  SweepReport,
} from "./artifacts/artifact-store.ts";
export { ArtifactStore } from "./artifacts/artifact-store.ts";
export type { ByteRange, ByteStore } from "./artifacts/byte-store.ts";
export { DirectoryStore } from "./artifacts/directory-store.ts";
export type { BatchEnd, StoredBatch } from "./batches/batch-store.ts";
export { BatchStore, batchJobId, batchOf } from "./batches/batch-store.ts";
export type { ClaimedCalls } from "./batches/webhook-queue.ts";
export { WebhookQueue } from "./batches/webhook-queue.ts";
export { checked, invalid } from "./checked.ts";
export type { DeadLetter, NewDeadLetter } from "./dead-letters/dead-letters.ts";
export { DeadLetters } from "./dead-letters/dead-letters.ts";
export { DeadLetterWorker } from "./dead-letters/dead-letters-worker.ts";
export type { EgressEntry } from "./egress/egress-log.ts";
export { EgressLog } from "./egress/egress-log.ts";
export type { Expectation } from "./events/inbox.ts";
export type {
  Cancelled,
  IdentifiedEvent,
  JobEvent,
  JobProgress,
  Publication,
  QueueKeys,
  WaitingJob,
} from "./events/job-events.ts";
export { JobEvents } from "./events/job-events.ts";
export { lastLines } from "./events/last-lines.ts";
export { passes, pause } from "./events/redis-errors.ts";
export type { GroupResult, ResultGroupOptions } from "./events/result-group.ts";
export { ResultGroup } from "./events/result-group.ts";
export type { StagedRequest } from "./events/staging.ts";
export { Staging } from "./events/staging.ts";
export type { ResultOptions } from "./events/stream-reader.ts";
export { StreamReader } from "./events/stream-reader.ts";
export { controlChannel, pingWorker } from "./fleet/control-channel.ts";
export { FleetControl } from "./fleet/fleet-control.ts";
export { countLiveWorkers, recentSandboxes } from "./fleet/fleet-counts.ts";
export type { SandboxQuery, SandboxView, Scale, TenantUsage } from "./fleet/fleet-view.ts";
export { FleetView } from "./fleet/fleet-view.ts";
export { markMemory } from "./fleet/memory-mark.ts";
export type { CeilingUse } from "./fleet/tenant-ceilings.ts";
export { readCeilings } from "./fleet/tenant-ceilings.ts";
export { TenantNames } from "./fleet/tenant-names.ts";
export { tenantsLike } from "./fleet/tenant-search.ts";
export type { WorkerRecord, WorkerStatus } from "./fleet/worker-record.ts";
export { readWorkerProcess } from "./fleet/worker-record.ts";
export type { AuditEntry } from "./gateway/audit-log.ts";
export { AuditLog } from "./gateway/audit-log.ts";
export { BoardLogins } from "./gateway/board-logins.ts";
export { firstFingerprint } from "./gateway/idempotency.ts";
export { webhookSecret } from "./gateway/webhook-secret.ts";
export { Cancellation, cancelledUnbegun } from "./jobs/cancellation.ts";
export type { JobRecord, JobState, ShownState } from "./jobs/job-record.ts";
export {
  areCancelled,
  areUnfinished,
  jobStates,
  readJobRecord,
  readSandboxKey,
  resultIn,
  shownState,
  stateOf,
  unfinishedJobIds,
} from "./jobs/job-record.ts";
export type { FailedJobs } from "./jobs/redrive.ts";
export { failedJobs, redriveJob } from "./jobs/redrive.ts";
export type { VanishedJob } from "./jobs/unfinished-audit.ts";
export { auditUnfinished } from "./jobs/unfinished-audit.ts";
export { why } from "./jobs/why.ts";
export type { Why, WhyCode } from "./jobs/why-texts.ts";
export { whyCodes, whyForTenant } from "./jobs/why-texts.ts";
export type { ApiKey, NewKey } from "./keys/api-keys.ts";
export { ApiKeys, sameSecret } from "./keys/api-keys.ts";
export { checkLayout } from "./layout.ts";
export type { GrantList, Wanted } from "./leases/grants.ts";
export { Grants, grantedToAll } from "./leases/grants.ts";
export type {
  Holder,
  Holding,
  MeasuredBytes,
  ReleaseResult,
  RenewResult,
  TakeResult,
} from "./leases/leases.ts";
export { Leases, measuredText } from "./leases/leases.ts";
export { Renewals } from "./leases/renewals.ts";
export type { Shared } from "./leases/shared-homes.ts";
export { SharedHomes } from "./leases/shared-homes.ts";
export type { ClaimResult, WorkerInstance } from "./leases/worker-ids.ts";
export { WorkerIds } from "./leases/worker-ids.ts";
export type { SetLayerOptions, StoredLayer } from "./profiles/profile-store.ts";
export { checkLayer, ProfileStore } from "./profiles/profile-store.ts";
export type { ScopeQuestion } from "./profiles/scope-defaults.ts";
export { ScopeDefaults } from "./profiles/scope-defaults.ts";
export type { BoardQueueId } from "./queues/board-queue.ts";
export { boardQueue } from "./queues/board-queue.ts";
export { type Acceptance, Enqueuer } from "./queues/enqueuer.ts";
export type { BeginningAtOnce } from "./queues/exchange.ts";
export { forgetIdleQueues } from "./queues/idle-queues.ts";
export type { HeldJob } from "./queues/job-source.ts";
export { JobSource } from "./queues/job-source.ts";
export { MarkerWaits } from "./queues/marker-waits.ts";
export type { Offer, OfferTarget } from "./queues/offers.ts";
export { Offers, OfferTaker, offerQueueName } from "./queues/offers.ts";
export {
  attemptOf,
  entryKey,
  jobIdOf,
  queuedId,
  queueKeys,
  takenKey,
  unfinishedKeys,
} from "./queues/queue-layout.ts";
export { makeRoomFor } from "./queues/room-claims.ts";
export { acceptForLater, submissionFault } from "./queues/submission.ts";
export type { StagedPayload, SubmittedTo } from "./queues/submit.ts";
export { submitJob } from "./queues/submit.ts";
export { pruningJobs } from "./queues/unused-sandboxes.ts";
export { Wakes } from "./queues/wakes.ts";
export { redisNow } from "./redis-now.ts";
export { timingProblem } from "./schedule/cron.ts";
export { CronRunner } from "./schedule/cron-runner.ts";
export type { ScheduledJob, StagingPort } from "./schedule/schedule.ts";
export { Schedule } from "./schedule/schedule.ts";
export type { ScheduleState } from "./schedule/schedule-state.ts";
export { pauseState, putState, timingOf, wakeMs } from "./schedule/schedule-state.ts";
export { ScheduleStore } from "./schedule/schedule-store.ts";
export { ScheduleWorker } from "./schedule/schedule-worker.ts";
export type { SetSecretOptions } from "./secrets/secret-store.ts";
export { SecretStore } from "./secrets/secret-store.ts";
export { repairIndexes } from "./slots.ts";
export type { PutSnapshot, SnapshotRecord } from "./snapshots/snapshot-store.ts";
export { SnapshotStore, viewOf } from "./snapshots/snapshot-store.ts";
export type { SetToolOptions, StoredTool } from "./tools/tool-store.ts";
export { ToolStore } from "./tools/tool-store.ts";
export type { UsedByAttempt } from "./usage/usage-record.ts";
export { usageDaysKept } from "./usage/usage-record.ts";
export type { FleetUsage, FleetUsageQuery, UsageReport } from "./usage/usage-report.ts";
export { fleetUsage, usageReport } from "./usage/usage-report.ts";
