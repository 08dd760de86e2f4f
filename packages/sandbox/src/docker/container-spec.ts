import { createHash } from "node:crypto";
import { type SandboxProfile, teamDirectory, workspaceDirectory } from "@berth/protocol";
import type Docker from "dockerode";
import { fixedFields, fixedHostConfig, initMountPath, linkMountPath } from "./container-shape.ts";
import type { EtcFile } from "./etc-files.ts";
import { seccompProfile } from "./seccomp-profile.ts";
import type { SharedHome } from "./shared-directories.ts";
import type { WorkspaceHome } from "./workspace.ts";

export interface SpecInput {
  readonly profile: SandboxProfile;
  readonly workspace: WorkspaceHome;
  readonly initPath: string;
  /** Where the worker listens for init. */
  readonly linkDirectory: string;
  readonly etcFiles: readonly EtcFile[];
  readonly shared: SharedHome;
  /** The profile's mounts, checked against what the host allows. */
  readonly hostMounts: readonly Docker.MountSettings[];
  /** The block device of the workspaces; undefined where there is none whose rates could be limited. */
  readonly disk: string | undefined;
  /** The JSON of the profile's seccomp file, instead of ours. */
  readonly seccomp: string | undefined;
  /** Paths the image declares as volumes. The engine would make each a writable directory on the host, without a limit. */
  readonly imageVolumes: readonly string[];
}

/**
 * The container of a sandbox. All hardening is here and in `container-shape.ts`, which the engine proxy checks. Of a job, only the
 * profile has an influence on it. Fields that are not set keep the engine's defaults, such as masked and read-only paths of /proc.
 */
export function containerSpec(input: SpecInput): Docker.ContainerCreateOptions {
  const { profile, workspace } = input;
  return {
    ...fixedFields,
    Cmd: [
      ...fixedFields.Cmd,
      ...input.shared.directories.flatMap(({ target }) => [
        target === teamDirectory ? "--see" : "--also",
        target,
      ]),
    ],
    Image: profile.image,
    User: workspace.user,
    NetworkDisabled: profile.network === "none",
    HostConfig: hostConfig(input),
  };
}

/** dockerode's types lack this field. */
type HostConfig = Docker.HostConfig & { CgroupnsMode: "private" };

function hostConfig(input: SpecInput): HostConfig {
  const { profile, workspace } = input;
  const { limits } = profile;
  return {
    ...fixedHostConfig,
    NetworkMode: profile.network,
    ...(profile.runtime === undefined ? {} : { Runtime: profile.runtime }),
    SecurityOpt: securityOptions(input),
    ReadonlyRootfs: profile.readOnlyRoot,
    // Bounds a writable root, or a tenant could fill the host's disk. An engine that cannot do so refuses the container.
    ...(profile.readOnlyRoot ? {} : { StorageOpt: { size: String(limits.rootBytes) } }),
    Tmpfs: tmpfs(input),
    ShmSize: limits.shmBytes,
    // 0: no cap, for the engine as for the profile.
    Memory: limits.memoryBytes,
    // Memory and swap together. Equal to memory: no swap, since swapping slows down all users of the disk.
    MemorySwap: limits.memoryBytes === 0 ? 0 : limits.memoryBytes + limits.swapBytes,
    NanoCpus: Math.round(limits.cpus * 1e9),
    PidsLimit: limits.pids,
    Ulimits: ulimits(profile, workspace),
    ...(profile.dns.length === 0 ? {} : { Dns: profile.dns }),
    // Without a network, Berth's own /etc/hosts has them.
    ...(profile.network === "none" || profile.extraHosts.length === 0
      ? {}
      : { ExtraHosts: profile.extraHosts }),
    ...deviceRequests(profile.gpus),
    ...diskLimits(input),
    ...(input.shared.gid === undefined ? {} : { GroupAdd: [String(input.shared.gid)] }),
    Mounts: [
      ...workspaceMount(input),
      ...input.shared.directories.map(({ source, target, access }) => ({
        ...{ Type: "bind" as const, Source: source, Target: target },
        ...(access === "ro" ? { ReadOnly: true } : {}),
      })),
      { Type: "bind", Source: input.initPath, Target: initMountPath, ReadOnly: true },
      { Type: "bind", Source: input.linkDirectory, Target: linkMountPath, ReadOnly: true },
      ...input.etcFiles.map(({ source, target }) => ({
        Type: "bind" as const,
        Source: source,
        Target: target,
        ReadOnly: true,
      })),
      ...input.hostMounts,
    ],
  };
}

function securityOptions({ profile, seccomp }: SpecInput): string[] {
  return [
    "no-new-privileges",
    `seccomp=${seccomp ?? seccompProfile}`,
    ...(profile.apparmor === undefined ? [] : [`apparmor=${profile.apparmor}`]),
  ];
}

/** With `none`, /workspace is one of the tmpfs. */
function workspaceMount({ profile, workspace }: SpecInput): Docker.MountSettings[] {
  if (profile.workspace === "none") return [];
  const isReadOnly = profile.workspace === "ro";
  return [
    {
      ...{ Type: "bind", Source: workspace.path, Target: workspaceDirectory },
      ...(isReadOnly ? { ReadOnly: true } : {}),
    },
  ];
}

function tmpfs({ profile, workspace, imageVolumes }: SpecInput): Record<string, string> {
  const { limits } = profile;
  const [uid, gid] = workspace.user.split(":");
  // Owned by the tenant: the runtime ignores the mode, and gives the mount the mode of the image's directory.
  const bounds = `rw,nosuid,nodev,size=${limits.tmpfsBytes},nr_inodes=${limits.tmpfsInodes},mode=1777,uid=${uid},gid=${gid}`;
  const volumes = imageVolumes.filter((path) => path !== workspaceDirectory);
  const own = profile.workspace === "none" ? [workspaceDirectory] : [];
  const paths = [...profile.tmpfs, ...volumes, ...own];
  return Object.fromEntries(paths.map((path) => [path, `${bounds},${path === "/run" ? "noexec" : "exec"}`]));
}

function ulimits(
  { limits, quotaFor, ulimits: named }: SandboxProfile,
  workspace: WorkspaceHome,
): { Name: string; Soft: number; Hard: number }[] {
  const byName = {
    nofile: limits.openFiles,
    ...(limits.workspaceBytes === 0 || quotaFor === "writes" ? {} : { fsize: limits.workspaceBytes }),
    // The kernel counts processes per uid on the whole host. Sandboxes with a shared uid would use up each other's limit.
    ...(workspace.ownUid && !workspace.sharesUid && limits.pids > 0 ? { nproc: limits.pids } : {}),
    ...named,
  };
  return Object.entries(byName).map(([name, limit]) => {
    const { soft, hard } = typeof limit === "number" ? { soft: limit, hard: limit } : limit;
    return { Name: name, Soft: soft, Hard: hard };
  });
}

/** Fields without a limit are left out, so that the engine proxy need not allow them. */
function diskLimits({ profile: { ioWeight, limits }, disk }: SpecInput): Partial<Docker.HostConfig> {
  const rate = (name: string, value: number) =>
    disk === undefined || value === 0 ? {} : { [name]: [{ Path: disk, Rate: value }] };
  return {
    ...(ioWeight === 0 ? {} : { BlkioWeight: ioWeight }),
    ...rate("BlkioDeviceReadBps", limits.diskReadBytesPerSecond),
    ...rate("BlkioDeviceWriteBps", limits.diskWriteBytesPerSecond),
    ...rate("BlkioDeviceReadIOps", limits.diskReadsPerSecond),
    ...rate("BlkioDeviceWriteIOps", limits.diskWritesPerSecond),
  };
}

function deviceRequests(gpus: SandboxProfile["gpus"]): Pick<Docker.HostConfig, "DeviceRequests"> {
  if (gpus === 0) return {};
  const which = Array.isArray(gpus) ? { DeviceIDs: gpus } : { Count: gpus === "all" ? -1 : gpus };
  return { DeviceRequests: [{ Driver: "", ...which, Capabilities: [["gpu"]], Options: {} }] };
}

/** A container is adopted only if its hash equals that of the wanted spec. `more`: what the spec does not show, such as the set-up. */
export function specHash(
  spec: Docker.ContainerCreateOptions,
  imageId: string,
  more: readonly string[] = [],
): string {
  return createHash("sha256")
    .update(JSON.stringify([spec, imageId, ...more]))
    .digest("hex")
    .slice(0, 32);
}
