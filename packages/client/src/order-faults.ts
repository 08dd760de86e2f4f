import { type CeilingName, type Fault, type FaultCode, isFault } from "@berth/protocol";

/** Faults of one order, which the others of its batch do not share. */
const ofOneOrder: readonly FaultCode[] = [
  "invalid-job",
  "job-id-taken",
  "wrong-pool",
  "payload-too-large",
  "not-granted",
  "unknown-tenant",
];

/** What passes them ends by itself: there is room when some of the tenant's jobs have ended. */
const ofWaiting: readonly CeilingName[] = ["waitingJobs", "waitingBytes"];

/** Whether a fault refuses a single order of a batch, and the batch goes on without it. */
export function isOrderFault(error: unknown): error is Fault {
  if (isFault(error, "tenant-full")) return !ofWaiting.includes(error.context.ceiling);
  return isFault(error) && ofOneOrder.includes(error.code);
}

/** Whether an order finds no room now, and is to be submitted again when something has ended. */
export function isNoRoom(error: unknown): boolean {
  if (isFault(error, "tenant-full")) return ofWaiting.includes(error.context.ceiling);
  return isFault(error) && ["sandbox-full", "fleet-full"].includes(error.code);
}
