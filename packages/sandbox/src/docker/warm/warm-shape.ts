import type { SandboxProfile } from "@berth/protocol";
import { workspaceDirectory } from "@berth/protocol";
import type Docker from "dockerode";
import { linkMountPath } from "../container-shape.ts";
import { containerSpec, type SpecInput, specHash } from "../container-spec.ts";
import type { ImageFacts } from "../image.ts";

/** What containers of the pool have in common that can take each other's place: image and profile, without key and uid. */
export interface WarmShape {
  readonly id: string;
  readonly profile: SandboxProfile;
  readonly image: ImageFacts;
  readonly host: HostShape;
}

/** Of the worker's host. */
export type HostShape = Pick<SpecInput, "initPath" | "hostMounts" | "seccomp" | "disk">;

/** What only one container has. */
export type WarmMounts = Pick<SpecInput, "workspace" | "etcFiles">;

/** In the workspace's place until it is mounted: nothing can be written there. */
const placeholder = "ro,nosuid,nodev,noexec,size=4096,mode=0555";
const placeholders = [workspaceDirectory, linkMountPath];

/**
 * Profiles that leave nothing open but the workspace. Directories that a tenant's sandboxes share need its group, which a container has
 * from its start; a user that an operator chose belongs to the workspace's disk; other runtimes than the engine's own may not be this
 * kernel's, and mount nothing that the host mounts; a graphics card is not kept for a tenant who may never come.
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
  // What /etc/passwd and /etc/hosts are made of is in no field of the spec.
  const files = JSON.stringify([profile.workspace, profile.env.HOME, profile.extraHosts]);
  return { id: specHash(spec, image.id, [files]), profile, image, host };
}

/** The very container of a sandbox, with two empty directories where its workspace and its link will be. */
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
    // init enters the workspace when it is there: a directory that was entered before is not the one that is mounted over it.
    WorkingDir: "/",
    Cmd: [...(spec.Cmd ?? []), "--pool"],
    HostConfig: {
      ...hostConfig,
      Tmpfs: { ...(Tmpfs as object), ...Object.fromEntries(placeholders.map((path) => [path, placeholder])) },
      Mounts: Mounts.filter(({ Target }) => !placeholders.includes(Target)),
    },
  };
}
