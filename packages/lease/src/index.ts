export type {
  Holder,
  LeaseState,
  MarkedJob,
  Place,
  ReleaseResult,
  RenewResult,
  TakeResult,
  WaitingLimits,
} from "./leases.ts";
export { defaultPool, Leases } from "./leases.ts";
