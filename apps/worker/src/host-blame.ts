import { type Fault, isFault, isHostFault, type SandboxProfile } from "@berth/protocol";

/**
 * Whether this host is to blame for a sandbox that did not start. It is not if the profile alone explains the failure: a mistyped profile
 * fails for each of its tenants, while others start. It is if the worker's own variables name what is missing.
 */
export function blamesHost(
  error: unknown,
  own: Pick<SandboxProfile, "image" | "network" | "runtime" | "seccomp">,
): error is Fault {
  if (!isHostFault(error)) return false;
  // The sandbox belongs on another host.
  if (isFault(error, "tied-elsewhere")) return false;
  if (isFault(error, "mount-refused") || isFault(error, "egress-unavailable")) return false;
  if (isFault(error, "image-missing")) return error.context.image === own.image;
  if (isFault(error, "runtime-missing")) return error.context.runtime === own.runtime;
  if (isFault(error, "seccomp-unusable")) return error.context.path === own.seccomp;
  if (isFault(error, "profile-unmet"))
    return error.context.field === "network" && error.context.value === own.network;
  return true;
}
