import { type Fault, isFault, isHostFault, type SandboxProfile } from "@berth/protocol";

/**
 * Whether a sandbox that did not start tells something about this host. What its profile alone explains does not: a mistyped profile
 * fails for each of its tenants, while others start. What the worker's own variables name should be here, so that counts.
 */
export function blamesHost(
  error: unknown,
  own: Pick<SandboxProfile, "image" | "network" | "runtime" | "seccomp">,
): error is Fault {
  if (!isHostFault(error)) return false;
  // Its place is on another host.
  if (isFault(error, "tied-elsewhere")) return false;
  if (isFault(error, "mount-refused") || isFault(error, "egress-unavailable")) return false;
  if (isFault(error, "image-missing")) return error.context.image === own.image;
  if (isFault(error, "runtime-missing")) return error.context.runtime === own.runtime;
  if (isFault(error, "seccomp-unusable")) return error.context.path === own.seccomp;
  if (isFault(error, "profile-unmet"))
    return error.context.field === "network" && error.context.value === own.network;
  return true;
}
