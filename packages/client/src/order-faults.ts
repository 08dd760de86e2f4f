import { type CeilingName, type Fault, type FaultCode, isFault } from "@berth/protocol";

/** Faults of a single order; the rest of its batch continues. */
const ofOneOrder: readonly FaultCode[] = [
  "invalid-job",
  "job-id-taken",
  "wrong-pool",
  "payload-too-large",
  "not-granted",
  "unknown-tenant",
];

/** Ceilings that free up by themselves, when some of the tenant's jobs end. */
const ofWaiting: readonly CeilingName[] = ["waitingJobs", "waitingBytes"];

/** Whether a fault refuses only this order of a batch. */
export function isOrderFault(error: unknown): error is Fault {
  if (isFault(error, "tenant-full")) return !ofWaiting.includes(error.context.ceiling);
  return isFault(error) && ofOneOrder.includes(error.code);
}

/** Whether there is no room for an order now, so that it should be retried when a job ends. */
export function isNoRoom(error: unknown): boolean {
  if (isFault(error, "tenant-full")) return ofWaiting.includes(error.context.ceiling);
  return isFault(error) && ["sandbox-full", "fleet-full"].includes(error.code);
}
