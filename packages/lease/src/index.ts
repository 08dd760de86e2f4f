export type {
  Holder,
  Holding,
  LeaseState,
  MarkedJob,
  Place,
  ReleaseResult,
  RenewResult,
  TakeResult,
  WaitingLimits,
} from "./leases.ts";
export { defaultPool, Leases } from "./leases.ts";
export type { ClaimResult, WorkerLife, WorkerWords } from "./worker-ids.ts";
export { WorkerIds } from "./worker-ids.ts";
