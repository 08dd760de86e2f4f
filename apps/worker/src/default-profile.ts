import { isFault, type SandboxProfile } from "@berth/protocol";
import type { Policy } from "./policy.ts";

/** The profile of a job that names none; undefined while the live layers are invalid. */
export function defaultProfileOf(policy: Policy): SandboxProfile | undefined {
  try {
    return policy.resolve({}).profile;
  } catch (error) {
    if (isFault(error)) return undefined;
    throw error;
  }
}

/** The fields that the worker logs when it starts. */
export function shownProfile(policy: Policy): object {
  const profile = defaultProfileOf(policy);
  if (!profile) return {};
  const { image, runtime, network, mode, limits, exec, idleMs, maxAgeMs } = profile;
  return {
    image,
    runtime: runtime ?? "the engine's default",
    network,
    mode,
    limits,
    timeoutMs: exec.timeoutMs,
    idleMs,
    maxAgeMs,
  };
}
