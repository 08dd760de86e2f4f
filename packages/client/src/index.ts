export type {
  ApiKey,
  DeadLetter,
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
  TenantUsage,
  Why,
  WhyCode,
  WorkerRecord,
} from "@berth/ledger";
export { jobStates, ResultGroup, shownState, whyCodes, whyForTenant } from "@berth/ledger";
export type {
  FaultCode,
  JobKind,
  JobRequestInput,
  JobResult,
  Outcome,
  ResultOf,
  ScheduleInput,
} from "@berth/protocol";
export { execBlock, exitCodeOf, Fault, isFault, isSuccess } from "@berth/protocol";
export type { ArtifactsOptions } from "./artifacts.ts";
export { Artifacts } from "./artifacts.ts";
export type { BatchOptions, BatchProgress, BatchResult, Orders } from "./batch.ts";
export { Batch } from "./batch.ts";
export type { BerthOptions, SubmitOptions } from "./berth.ts";
export { Berth } from "./berth.ts";
export { DeadLetters } from "./dead-letters.ts";
export type { EndedJob, JobQuery, JobView } from "./jobs.ts";
export { Jobs } from "./jobs.ts";
export type { CheckOptions, JobOrder } from "./order.ts";
export { CheckedOrder, checkOrder } from "./order.ts";
export { isNoRoom, isOrderFault } from "./order-faults.ts";
export type { EnqueuedJob } from "./pending-job.ts";
export { PendingJob } from "./pending-job.ts";
export type { SetProfileOptions } from "./profiles.ts";
export { Profiles } from "./profiles.ts";
export type { ScheduleView } from "./schedules.ts";
export { Schedules } from "./schedules.ts";
export type { CodeOptions, ExecOptions, JobOptions } from "./tenant.ts";
export { Tenant } from "./tenant.ts";
