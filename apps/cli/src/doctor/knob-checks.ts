import { type Finding, findingsOf } from "./finding.ts";

/** The engine's report, as far as it decides which profile fields have an effect. */
export interface EngineFacts {
  readonly securityOptions: readonly string[];
  readonly runtimes: readonly string[];
  readonly swapLimit: boolean;
  /** The kernel can share the disk by weights. */
  readonly ioWeight: boolean;
  /** Limits of the disk that the kernel does not have: names in `limits`. */
  readonly unthrottled: readonly string[];
  /** The workspaces are on a block device, which the engine can bound. */
  readonly disk: boolean;
  readonly cgroupVersion: string;
  /** The storage driver and its file system. */
  readonly driver: string;
  readonly backingFilesystem: string | undefined;
}

const { ok, warn } = findingsOf("engine");

/** Profile fields that this engine or its kernel does not enforce, or that keep a sandbox from starting. */
export function* knobs(facts: EngineFacts): Generator<Finding> {
  const missing = unenforced(facts);
  yield missing.length === 0
    ? ok("every field of a profile is enforced")
    : warn(
        `not enforced here: ${missing.join("; ")}`,
        "leave these fields out of the profiles of this host's workers; docs/profiles.md has them all",
      );
}

function unenforced({ securityOptions, runtimes, ...facts }: EngineFacts): string[] {
  const hasAppArmor = securityOptions.some((option) => option.includes("name=apparmor"));
  // The engine does not report whether xfs was mounted with pquota; without it the engine refuses the container.
  const canBoundRoot = facts.driver !== "overlay2" || facts.backingFilesystem === "xfs";
  return [
    ...(hasAppArmor ? [] : ["`apparmor` (the engine has no AppArmor, and ignores it)"]),
    ...(facts.swapLimit ? [] : ["`limits.swapBytes` (the kernel does not account for swap)"]),
    ...(canBoundRoot
      ? []
      : [
          `\`readOnlyRoot=false\` (${facts.driver} on ${facts.backingFilesystem} has no quotas; no sandbox starts)`,
        ]),
    ...(facts.ioWeight ? [] : ["`ioWeight` (the kernel's disk scheduler has no weights)"]),
    ...(facts.disk ? [] : ["`limits.disk…` (the workspaces are on no block device)"]),
    ...(facts.disk && facts.unthrottled.length > 0
      ? [
          `${facts.unthrottled.map((name) => `\`limits.${name}\``).join(", ")} (the kernel cannot throttle the disk so)`,
        ]
      : []),
    ...(facts.disk && facts.cgroupVersion === "1"
      ? ["`limits.diskWrite…` for writes through the page cache (cgroup v1)"]
      : []),
    ...(runtimes.some((name) => /nvidia|amd|rocm/i.test(name))
      ? []
      : ["`gpus` (the engine has no runtime for them; no sandbox starts)"]),
  ];
}
