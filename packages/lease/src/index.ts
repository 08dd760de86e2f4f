export type { Holder, LeaseState, ReleaseResult, RenewResult, TakeResult } from "./leases.ts";
export { Leases } from "./leases.ts";
