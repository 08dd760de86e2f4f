import { type Fault, isFault } from "./fault.ts";
import type { FaultCode } from "./fault-table.ts";

/** Faults of this host or its engine that keep a sandbox from starting: another worker may be able to start it. */
export const hostFaults: ReadonlySet<FaultCode> = new Set<FaultCode>([
  "engine-unreachable",
  "engine-timeout",
  "engine-refused",
  "engine-wedged",
  "image-missing",
  "runtime-missing",
  "profile-unmet",
  "sandbox-start-failed",
  "init-unresponsive",
  "init-protocol",
  "init-missing",
  "init-foreign",
  "workspace-unusable",
  "mount-refused",
  "tied-elsewhere",
  "seccomp-unusable",
  "egress-unavailable",
]);

export function isHostFault(error: unknown): error is Fault {
  return isFault(error) && hostFaults.has(error.code);
}
