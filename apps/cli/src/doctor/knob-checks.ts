import { type Finding, tellerOf } from "./finding.ts";

/** What the engine says of itself, as far as it decides which fields of a profile have an effect. */
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
  /** The storage driver, and the file system beneath it. */
  readonly driver: string;
  readonly backingFilesystem: string | undefined;
}

const { ok, warn } = tellerOf("engine");

/** Fields of a profile that this engine or its kernel does not enforce, or with which it starts no sandbox. */
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
  // Whether xfs was mounted with pquota, the engine does not tell; it refuses the container if not.
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
