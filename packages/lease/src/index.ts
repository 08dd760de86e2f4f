export type {
  Holder,
  LeaseState,
  MarkedJob,
  Place,
  ReleaseResult,
  RenewResult,
  TakeResult,
} from "./leases.ts";
export { defaultPool, Leases } from "./leases.ts";
