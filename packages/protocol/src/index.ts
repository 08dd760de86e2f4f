export { abortReason } from "./abort-reason.ts";
export type { Acceptance } from "./acceptance.ts";
export { acceptanceOf, acceptanceSettings } from "./acceptance.ts";
export type { AgentTextOptions } from "./agent-text.ts";
export {
  agentText,
  byteSize,
  execBlock,
  outputText,
  quotaText,
  shownOutput,
  textWithEnd,
} from "./agent-text.ts";
export type { ArtifactRef, ArtifactRefusal, Conversation } from "./artifact.ts";
export { artifactId, artifactRef, artifactRefusal, artifactRefusals } from "./artifact.ts";
export type { Backoff } from "./backoff.ts";
export { backoffMs } from "./backoff.ts";
export { BoundedWait } from "./bounded-wait.ts";
export type { ControlMessage } from "./control.ts";
export { controlMessage } from "./control.ts";
export type { DeadReason } from "./dead-letter.ts";
export { deadReason } from "./dead-letter.ts";
export type {
  ExecRequest,
  ExecRequestInput,
  ExecResult,
  KeptOutput,
  OneForm,
  OutputChunk,
  OutputStream,
} from "./exec.ts";
export { execRequest } from "./exec.ts";
export { Fault, isFault } from "./fault.ts";
export type { FaultCode, FaultContexts, FaultEntry, SubmittedJob } from "./fault-table.ts";
export { faultCodes, faultTable } from "./fault-table.ts";
export type { EntryType, FileEntry, FileRefusalCode, GrepMatch, WorkspaceUsage } from "./files.ts";
export { FileRefusal, fileEntry, fileRefusals, grepMatch } from "./files.ts";
export { heartbeatMs, workerGoneMs } from "./heartbeat.ts";
export { hostFaults, isHostFault } from "./host-faults.ts";
export type {
  AgentName,
  Epoch,
  FleetId,
  PoolName,
  ProfileName,
  SandboxKey,
  SessionName,
  TenantId,
  WorkerId,
} from "./ids.ts";
export {
  agentName,
  epoch,
  fleetId,
  hostName,
  poolName,
  profileName,
  sandboxKey,
  scheduleId,
  sessionName,
  sharedOwner,
  tenantId,
  tenantOf,
  workerId,
} from "./ids.ts";
export type { Job, JobInput, Retry, Scope } from "./job.ts";
export { job, retry, sandboxKeyOf, scope } from "./job.ts";
export type { JobId } from "./job-ids.ts";
export { chosenJobId, jobId, ownedId, scheduledJobId } from "./job-ids.ts";
export type { JobKind, JobRequest, JobRequestInput, SandboxRequest, Step } from "./job-kinds.ts";
export {
  isRepeatable,
  jobRequest,
  maxInlineBytes,
  maxRequestBytes,
  stagedAboveBytes,
  step,
} from "./job-kinds.ts";
export type { JobResult, JobTiming, JobValue, ResultOf, ValueOf } from "./job-result.ts";
export { flatResult, jobResult, jobTiming, jobValue, jobValues } from "./job-result.ts";
export type { StoredResult } from "./job-text.ts";
export { withText } from "./job-text.ts";
export { fleetQueuePrefix, queuePrefix, redisKeys } from "./keys.ts";
export type { Labels } from "./labels.ts";
export { labels } from "./labels.ts";
export { nearest } from "./nearest.ts";
export type { Outcome, OutcomeKind } from "./outcome.ts";
export { assertNever, exitCodeOf, isSuccess, outcome } from "./outcome.ts";
export { outcomeText } from "./outcome-text.ts";
export { maxProblems, problemsOf } from "./problems.ts";
export type {
  ExecLimits,
  MergeRule,
  SandboxLimits,
  SandboxProfile,
  SandboxProfileInput,
} from "./profile.ts";
export {
  capOf,
  execLimits,
  isDisabled,
  mergeRules,
  sandboxLimits,
  sandboxProfile,
  tightenLimits,
} from "./profile.ts";
export type {
  LayerId,
  NamedLayer,
  NamedLayerInput,
  ProfileField,
  ProfileLayer,
  ProfileLayerInput,
} from "./profile-layer.ts";
export {
  layerId,
  layerSchema,
  layers,
  profileFields,
  profileLayer,
  tighteningLayer,
} from "./profile-layer.ts";
export type { Excess, LayerChange } from "./profile-merge.ts";
export { layerChanges, replaceWith, tightenBy } from "./profile-merge.ts";
export { readSize, readTime } from "./quantities.ts";
export type { RedisAddress, RedisHost } from "./redis-url.ts";
export { redisAddress, redisUrl } from "./redis-url.ts";
export type { DueTime, ScheduledOrder, ScheduleInput, ScheduleSpec } from "./schedule.ts";
export { dueTime, latestDueMs, scheduleSpec } from "./schedule.ts";
export { settingNames, unknownSettings } from "./settings.ts";
export { signalName } from "./signals.ts";
export {
  pathProblem,
  withoutWorkspacePrefix,
  workspaceDirectory,
  workspaceFilePath,
  workspacePath,
} from "./workspace-path.ts";
export { writesRefusedMs } from "./writes-refused.ts";
