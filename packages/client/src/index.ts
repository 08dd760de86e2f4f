export type {
  ApiKey,
  Approval,
  DeadLetter,
  FleetUsage,
  FleetUsageQuery,
  GrantList,
  GroupResult,
  IdentifiedEvent,
  JobState,
  NewKey,
  ResultGroupOptions,
  ResultOptions,
  SandboxQuery,
  SandboxView,
  Scale,
  ShownState,
  StoredLayer,
  StoredTool,
  TenantUsage,
  UsageReport,
  WholeApproval,
  Why,
  WhyCode,
  WorkerRecord,
} from "@berth/ledger";
export {
  cancelledUnbegun,
  checkLayout,
  jobStates,
  ResultGroup,
  shownState,
  whyCodes,
  whyForTenant,
} from "@berth/ledger";
export type {
  DayUsage,
  FaultCode,
  JobKind,
  JobRequestInput,
  JobResult,
  Outcome,
  ResultOf,
  ScheduleInput,
  SnapshotView,
  ToolArguments,
  ToolDefinition,
  ToolDefinitionInput,
  UsageRange,
  UsageSums,
} from "@berth/protocol";
export { execBlock, exitCodeOf, Fault, isFault, isSuccess } from "@berth/protocol";
export type { DecideOptions } from "./approvals.ts";
export { Approvals } from "./approvals.ts";
export type { ArtifactsOptions } from "./artifacts.ts";
export { Artifacts } from "./artifacts.ts";
export type { BatchOptions, BatchProgress, BatchResult, Orders } from "./batch.ts";
export { Batch } from "./batch.ts";
export type { BerthOptions, SubmitOptions } from "./berth.ts";
export { Berth } from "./berth.ts";
export { DeadLetters } from "./dead-letters.ts";
export type { EndedJob, JobAddress, JobQuery, JobView } from "./jobs.ts";
export { Jobs } from "./jobs.ts";
export type { NoSandbox, NoSandboxOptions } from "./no-sandbox.ts";
export { whenNoSandbox } from "./no-sandbox.ts";
export type { CheckOptions, JobOrder } from "./order.ts";
export { CheckedOrder, checkOrder } from "./order.ts";
export { isNoRoom, isOrderFault } from "./order-faults.ts";
export type { EnqueuedJob } from "./pending-job.ts";
export { PendingJob } from "./pending-job.ts";
export type { SetProfileOptions } from "./profiles.ts";
export { Profiles } from "./profiles.ts";
export type { ScheduleView } from "./schedules.ts";
export { Schedules } from "./schedules.ts";
export type { Reencrypted } from "./secrets.ts";
export { Secrets } from "./secrets.ts";
export type { CodeOptions, ExecOptions, ForkOptions, JobOptions } from "./tenant.ts";
export { Fork, Tenant } from "./tenant.ts";
export type { ToolUser, ToolView } from "./tools.ts";
export { Tools } from "./tools.ts";
export { untilRoom } from "./until-room.ts";
