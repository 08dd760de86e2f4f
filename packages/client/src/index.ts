export type { BatchOptions, BatchProgress, BatchResult } from "./batch.ts";
export { Batch } from "./batch.ts";
export type { BerthOptions, JobOrder } from "./berth.ts";
export { Berth, InvalidJob } from "./berth.ts";
export type { EnqueuedJob, IdentifiedEvent } from "./pending-job.ts";
export { PendingJob } from "./pending-job.ts";
export type { JobOptions } from "./tenant.ts";
export { Tenant } from "./tenant.ts";
