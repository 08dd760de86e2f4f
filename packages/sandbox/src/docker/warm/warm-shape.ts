import type { SandboxProfile } from "@berth/protocol";
import { workspaceDirectory } from "@berth/protocol";
import type Docker from "dockerode";
import { linkMountPath } from "../container-shape.ts";
import { containerSpec, type SpecInput, specHash } from "../container-spec.ts";
import type { ImageFacts } from "../image.ts";

/** Containers of one shape are interchangeable: same image and profile, without key and uid. */
export interface WarmShape {
  readonly id: string;
  readonly profile: SandboxProfile;
  readonly image: ImageFacts;
  readonly host: HostShape;
}

/** The part of a shape that comes from the worker's host. */
export type HostShape = Pick<SpecInput, "initPath" | "hostMounts" | "seccomp" | "disk">;

/** The part of a spec that differs between containers of one shape. */
export type WarmMounts = Pick<SpecInput, "workspace" | "etcFiles">;

/** Mounted in the workspace's place until the workspace is, so that nothing can be written there. */
const placeholder = "ro,nosuid,nodev,noexec,size=4096,mode=0555";
const placeholders = [workspaceDirectory, linkMountPath];

/**
 * Whether a container can be started before its sandbox is known. Not for profiles with:
 * - shared directories: they need the tenant's group, which a container has from its start;
 * - a user that the operator chose: it has to own the files on the disk;
 * - another runtime: it may have a kernel of its own, which does not see the host's mounts;
 * - graphics cards: none is reserved for a tenant who may never come.
 */
export function isWarmable({
  runtime,
  user,
  gpus,
  workspace,
  agentAccess,
  toolsAccess,
}: SandboxProfile): boolean {
  const isPlain = runtime === undefined && user === undefined && gpus === 0;
  return isPlain && workspace !== "none" && agentAccess === "none" && toolsAccess === "none";
}

export function warmShape(profile: SandboxProfile, image: ImageFacts, host: HostShape): WarmShape {
  const anywhere = { workspace: { path: "/", user: "1:1", ownUid: true, sharesUid: false }, etcFiles: [] };
  const spec = warmSpec({ profile, image, host }, anywhere);
  // These decide the content of /etc/passwd and /etc/hosts, and are in no field of the spec.
  const files = JSON.stringify([profile.workspace, profile.env.HOME, profile.extraHosts]);
  return { id: specHash(spec, image.id, [files]), profile, image, host };
}

/** A sandbox's container, with two empty directories where its workspace and its link will be mounted. */
export function warmSpec(
  { profile, image, host }: Omit<WarmShape, "id">,
  place: WarmMounts,
): Docker.ContainerCreateOptions {
  const spec = containerSpec({
    ...{ profile, ...host, ...place, imageVolumes: image.volumes },
    ...{ linkDirectory: "/", shared: { directories: [], gid: undefined } },
  });
  const { Mounts = [], Tmpfs = {}, ...hostConfig } = spec.HostConfig ?? {};
  return {
    ...spec,
    // init enters the workspace once it is mounted. The present directory would stay the one beneath the mount.
    WorkingDir: "/",
    Cmd: [...(spec.Cmd ?? []), "--pool"],
    HostConfig: {
      ...hostConfig,
      Tmpfs: { ...(Tmpfs as object), ...Object.fromEntries(placeholders.map((path) => [path, placeholder])) },
      Mounts: Mounts.filter(({ Target }) => !placeholders.includes(Target)),
    },
  };
}
