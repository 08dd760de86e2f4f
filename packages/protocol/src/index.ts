export type { AgentTextOptions } from "./agent-text.ts";
export { agentText, byteSize, outputText, quotaText } from "./agent-text.ts";
export type { ArtifactRef, ArtifactRefusal, Conversation } from "./artifact.ts";
export { artifactId, artifactRef, artifactRefusal, artifactRefusals } from "./artifact.ts";
export type { Backoff } from "./backoff.ts";
export { backoffMs } from "./backoff.ts";
export type { ControlMessage } from "./control.ts";
export { controlMessage } from "./control.ts";
export type { DeadReason } from "./dead-letter.ts";
export { deadReason } from "./dead-letter.ts";
export type {
  ExecRequest,
  ExecRequestInput,
  ExecResult,
  KeptOutput,
  OutputChunk,
  OutputStream,
} from "./exec.ts";
export { execRequest } from "./exec.ts";
export { Fault, isFault } from "./fault.ts";
export type { FaultCode, FaultContexts, FaultEntry } from "./fault-table.ts";
export { faultCodes, faultTable } from "./fault-table.ts";
export type { EntryType, FileEntry, FileRefusalCode, GrepMatch, WorkspaceUsage } from "./files.ts";
export { FileRefusal, fileRefusals } from "./files.ts";
export type { Epoch, FleetId, SandboxKey, TenantId, WorkerId } from "./ids.ts";
export { epoch, fleetId, sandboxKey, tenantId, tenantOf, workerId } from "./ids.ts";
export type { Job, JobId, JobInput, JobResult, JobValue, Retry, Scope } from "./job.ts";
export { job, jobId, jobTiming, retry, sandboxKeyOf, scope } from "./job.ts";
export type { JobKind, JobRequest, JobRequestInput, Step } from "./job-kinds.ts";
export {
  isRepeatable,
  jobRequest,
  maxInlineBytes,
  maxRequestBytes,
  stagedAboveBytes,
  step,
} from "./job-kinds.ts";
export { queuePrefix, redisKeys } from "./keys.ts";
export type { Outcome, OutcomeKind } from "./outcome.ts";
export { assertNever, exitCodeOf, isSuccess, outcome } from "./outcome.ts";
export { problemsOf } from "./problems.ts";
export type { ExecLimits, SandboxLimits, SandboxProfile, SandboxProfileInput } from "./profile.ts";
export { execLimits, sandboxLimits, sandboxProfile, tightenLimits } from "./profile.ts";
export type { DueTime, ScheduledOrder, ScheduleInput, ScheduleSpec } from "./schedule.ts";
export { dueTime, latestDueMs, scheduledJobId, scheduleSpec } from "./schedule.ts";
export { signalName } from "./signals.ts";
export type { TarItem } from "./tar-write.ts";
export { tarBytes, tarEndBytes, tarOf } from "./tar-write.ts";
export {
  pathProblem,
  withoutWorkspacePrefix,
  workspaceDirectory,
  workspaceFilePath,
  workspacePath,
} from "./workspace-path.ts";
export { writesRefusedMs } from "./writes-refused.ts";
