export { abortReason } from "./abort-reason.ts";
export type { Acceptance } from "./acceptance.ts";
export { acceptanceOf, acceptanceSettings } from "./acceptance.ts";
export type { AccessRule, Inspection, PrepareTool } from "./access-rules.ts";
export { accessRule, allowsPath, approvalMs, refusalBy } from "./access-rules.ts";
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
export { artifactId, artifactRef, artifactRefusal } from "./artifact.ts";
export type { Backoff } from "./backoff.ts";
export { backoffMs } from "./backoff.ts";
export { BoundedWait } from "./bounded-wait.ts";
export type { CeilingChanges, CeilingName, Ceilings } from "./ceilings.ts";
export {
  ceilingChanges,
  ceilingName,
  ceilingNames,
  ceilings,
  ceilingsOf,
  defaultCeilings,
} from "./ceilings.ts";
export type { ControlMessage } from "./control.ts";
export { controlMessage } from "./control.ts";
export type { Days, DayUsage, UsageRange, UsageSums } from "./day-usage.ts";
export {
  addedUsage,
  addUsage,
  dayName,
  dayNumber,
  daysOf,
  dayUsage,
  mostUsageDays,
  noUsage,
  usageDay,
  usageRange,
  usageSums,
} from "./day-usage.ts";
export type { DeadReason } from "./dead-letter.ts";
export { deadReason } from "./dead-letter.ts";
export type { EgressHost, EgressRule } from "./egress-rule.ts";
export { coversHost, egressHost, readEgressRule } from "./egress-rule.ts";
export type { EgressUse } from "./egress-use.ts";
export { egressUse } from "./egress-use.ts";
export { passedName, variableName } from "./environment-names.ts";
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
export type { GivenNames } from "./given-names.ts";
export { givenNames, givenNamesIn, givenNamesText, withGivenNames } from "./given-names.ts";
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
  agentIn,
  agentName,
  canonicalTenant,
  epoch,
  fleetId,
  givenAgent,
  givenSession,
  givenTenant,
  hostName,
  isMappedTenant,
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
export type { Job, JobInput, Retry } from "./job.ts";
export { job, partsOfKey, retry, sandboxKeyOf } from "./job.ts";
export type { JobId } from "./job-ids.ts";
export { chosenJobId, jobId, ownedId, scheduledJobId } from "./job-ids.ts";
export type {
  JobKind,
  JobRequest,
  JobRequestInput,
  SandboxRequest,
  Step,
  ToolRequest,
  WorkspaceRequest,
} from "./job-kinds.ts";
export {
  fillsWorkspace,
  isEnding,
  isRepeatable,
  isWorkspaceRequest,
  jobRequest,
  maxInlineBytes,
  maxRequestBytes,
  stagedAboveBytes,
  step,
} from "./job-kinds.ts";
export { jobPreview, shortPreview } from "./job-preview.ts";
export type { JobResult, JobTiming, JobUsage, JobValue, ResultOf, ValueOf } from "./job-result.ts";
export { flatResult, jobResult, jobTiming, jobUsage, jobValue, jobValues } from "./job-result.ts";
export type { StoredResult } from "./job-text.ts";
export { withText } from "./job-text.ts";
export { fleetQueuePrefix, queuePrefix, redisKeys } from "./keys.ts";
export type { Labels } from "./labels.ts";
export { labels } from "./labels.ts";
export type { LayerId } from "./layer-id.ts";
export { givenLayer, layerId, tenantInLayer } from "./layer-id.ts";
export { listText } from "./list-text.ts";
export { nearest } from "./nearest.ts";
export type { Outcome, OutcomeKind } from "./outcome.ts";
export { assertNever, exitCodeOf, isSuccess, outcome } from "./outcome.ts";
export { outcomeText } from "./outcome-text.ts";
export { mayPass } from "./passing.ts";
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
  sandboxLimits,
  sandboxProfile,
  tightenLimits,
} from "./profile.ts";
export type {
  NamedLayer,
  NamedLayerInput,
  ProfileField,
  ProfileLayer,
  ProfileLayerInput,
} from "./profile-layer.ts";
export {
  ceilingFields,
  layerChoices,
  layerSchema,
  layers,
  profileFields,
  profileLayer,
  tighteningLayer,
} from "./profile-layer.ts";
export type { Excess, LayerChange } from "./profile-merge.ts";
export { layerChanges, replaceWith, tightenBy } from "./profile-merge.ts";
export { readSize, readTime } from "./quantities.ts";
export type { QuotaBackend } from "./quota-backends.ts";
export { quotaBackends } from "./quota-backends.ts";
export type { RedisAddress, RedisHost } from "./redis-url.ts";
export { redisAddress, redisUrl } from "./redis-url.ts";
export type { DueTime, ScheduledOrder, ScheduleInput, ScheduleSpec } from "./schedule.ts";
export { dueTime, latestDueMs, scheduleSpec } from "./schedule.ts";
export type { DefaultScope, Scope } from "./scope.ts";
export { builtInScope, defaultScope, scope } from "./scope.ts";
export type { JobSecrets, SealedSecrets, SecretName } from "./secrets.ts";
export {
  jobSecrets,
  longestSecretBytes,
  sealedSecrets,
  secretLimits,
  secretName,
  secretValue,
  shortestSecretBytes,
} from "./secrets.ts";
export type { SetUpReport } from "./set-up-report.ts";
export { setUpOutputBytes, setUpReport } from "./set-up-report.ts";
export { settingNames, unknownSettings } from "./settings.ts";
export type { SnapshotMethod, SnapshotName, SnapshotView } from "./snapshot.ts";
export { snapshotMethod, snapshotName, snapshotView } from "./snapshot.ts";
export type { ToolDefinition, ToolDefinitionInput, ToolParameter } from "./tool.ts";
export { toolDefinition, toolName } from "./tool.ts";
export type { PreparedTool, ToolArguments } from "./tool-command.ts";
export { toolArguments, toolArgumentsSchema, toolCommand, toolRefusal } from "./tool-command.ts";
export { matchesWildcard } from "./wildcard.ts";
export {
  agentDirectory,
  pathProblem,
  sharedPath,
  teamDirectory,
  toolsDirectory,
  visibleFilePath,
  visiblePath,
  withoutWorkspacePrefix,
  workspaceDirectory,
  workspaceFilePath,
  workspacePath,
} from "./workspace-path.ts";
export { writesRefusedMs } from "./writes-refused.ts";
export type { WrittenFile } from "./written-file.ts";
export { writtenFile, writtenFiles } from "./written-file.ts";
