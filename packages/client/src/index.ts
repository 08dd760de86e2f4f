export type {
  DeadLetter,
  GrantList,
  GroupResult,
  IdentifiedEvent,
  ResultGroupOptions,
  ResultOptions,
  SandboxQuery,
  SandboxView,
  Scale,
  Why,
  WhyCode,
  WorkerRecord,
} from "@berth/ledger";
export { NotRedrivable, ResultGroup, whyCodes, whyForTenant } from "@berth/ledger";
export type { ArtifactsOptions } from "./artifacts.ts";
export { Artifacts } from "./artifacts.ts";
export type { BatchOptions, BatchProgress, BatchResult, Orders } from "./batch.ts";
export { Batch } from "./batch.ts";
export type { BerthOptions, JobOrder } from "./berth.ts";
export { Berth } from "./berth.ts";
export { DeadLetters } from "./dead-letters.ts";
export { InvalidJob } from "./invalid-job.ts";
export type { EnqueuedJob } from "./pending-job.ts";
export { PendingJob } from "./pending-job.ts";
export type { ScheduleView } from "./schedules.ts";
export { InvalidSchedule, Schedules } from "./schedules.ts";
export type { JobOptions } from "./tenant.ts";
export { Tenant } from "./tenant.ts";
