import { createHash } from "node:crypto";
import { type SandboxLimits, type SandboxProfile, workspaceDirectory } from "@berth/protocol";
import type Docker from "dockerode";
import { fixedFields, fixedHostConfig, initMountPath, linkMountPath } from "./container-shape.ts";
import type { EtcFile } from "./etc-files.ts";
import type { WorkspaceHome } from "./workspace.ts";

export interface SpecInput {
  readonly profile: SandboxProfile;
  readonly workspace: WorkspaceHome;
  readonly initPath: string;
  /** Where the worker listens for init. */
  readonly linkDirectory: string;
  readonly etcFiles: readonly EtcFile[];
  /** Paths the image declares as volumes. The engine would make each a writable directory on the host, without a limit. */
  readonly imageVolumes: readonly string[];
}

/**
 * The container of a sandbox: all the hardening is here and in `container-shape.ts`, which the engine proxy checks, and
 * nothing in a job reaches it but the profile's numbers. What is not named stays the engine's default: seccomp, masked and read-only paths of /proc.
 */
export function containerSpec(input: SpecInput): Docker.ContainerCreateOptions {
  const { profile, workspace } = input;
  return {
    ...fixedFields,
    Image: profile.image,
    User: workspace.user,
    NetworkDisabled: profile.network === "none",
    HostConfig: hostConfig(input),
  };
}

/** A field of the engine's API that the types do not know. */
type HostConfig = Docker.HostConfig & { CgroupnsMode: "private" };

function hostConfig(input: SpecInput): HostConfig {
  const { profile, workspace } = input;
  const { limits } = profile;
  return {
    ...fixedHostConfig,
    NetworkMode: profile.network,
    ...(profile.runtime === undefined ? {} : { Runtime: profile.runtime }),
    Tmpfs: tmpfs(limits, workspace, input.imageVolumes),
    ShmSize: limits.tmpfsBytes,
    // To the engine, too, 0 is no cap.
    Memory: limits.memoryBytes,
    // Equal to memory: no swap, which would turn a limit into slowness for everybody on the disk.
    MemorySwap: limits.memoryBytes,
    NanoCpus: Math.round(limits.cpus * 1e9),
    PidsLimit: limits.pids,
    Ulimits: ulimits(limits, workspace),
    Mounts: [
      { Type: "bind", Source: workspace.path, Target: workspaceDirectory },
      { Type: "bind", Source: input.initPath, Target: initMountPath, ReadOnly: true },
      { Type: "bind", Source: input.linkDirectory, Target: linkMountPath, ReadOnly: true },
      ...input.etcFiles.map(({ source, target }) => ({
        Type: "bind" as const,
        Source: source,
        Target: target,
        ReadOnly: true,
      })),
    ],
  };
}

function tmpfs(
  limits: SandboxLimits,
  workspace: WorkspaceHome,
  imageVolumes: readonly string[],
): Record<string, string> {
  const [uid, gid] = workspace.user.split(":");
  // Owned by the tenant: the runtime gives the mount the mode its directory has in the image, whatever is asked for.
  const bounds = `rw,nosuid,nodev,size=${limits.tmpfsBytes},nr_inodes=${limits.tmpfsInodes},mode=1777,uid=${uid},gid=${gid}`;
  const mounts: Record<string, string> = { "/run": `${bounds},noexec` };
  for (const path of ["/tmp", "/var/tmp", ...imageVolumes]) {
    if (path !== workspaceDirectory) mounts[path] = `${bounds},exec`;
  }
  return mounts;
}

function ulimits(
  limits: SandboxLimits,
  workspace: WorkspaceHome,
): { Name: string; Soft: number; Hard: number }[] {
  const same = (name: string, value: number) => ({ Name: name, Soft: value, Hard: value });
  return [
    same("nofile", limits.openFiles),
    same("core", 0),
    ...(limits.workspaceBytes === 0 ? [] : [same("fsize", limits.workspaceBytes)]),
    // The kernel counts processes per uid on the whole host: with a shared uid, tenants would use up each other's.
    ...(workspace.ownUid && limits.pids > 0 ? [same("nproc", limits.pids)] : []),
  ];
}

/** Equal specs have equal hashes; a survivor with another one is not adopted. */
export function specHash(spec: Docker.ContainerCreateOptions, imageId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([spec, imageId]))
    .digest("hex")
    .slice(0, 32);
}
