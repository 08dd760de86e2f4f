import { type Fault, type FaultCode, isFault } from "@berth/protocol";

/** What keeps a sandbox from starting because of this host or its engine: another worker may be able to start it. */
const hostFaults: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "engine-unreachable",
  "engine-timeout",
  "engine-refused",
  "engine-wedged",
  "image-missing",
  "runtime-missing",
  "sandbox-start-failed",
  "init-unresponsive",
  "init-protocol",
  "init-missing",
  "workspace-unusable",
]);

export function isHostFault(error: unknown): error is Fault {
  return isFault(error) && hostFaults.has(error.code);
}
