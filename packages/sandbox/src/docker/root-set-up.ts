import { type SandboxProfile, sandboxProfile } from "@berth/protocol";
import type Docker from "dockerode";
import { containerSpec } from "./container-spec.ts";

/** Package managers change the owner of files and drop to their own users. None of these reaches the host. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"];

/** The set-up command runs as root, in an image of its own. */
export function setsUpAsRoot({ setup }: SandboxProfile): boolean {
  return setup.root && setup.command !== "";
}

/** The profile of a sandbox in the image that the set-up made. */
export function derivedProfile(profile: SandboxProfile, image: string): SandboxProfile {
  return { ...profile, image, setup: { ...profile.setup, command: "" } };
}

/**
 * The container in which a set-up command runs as root. It has no mount, no link and none of the profile's variables, to which tenants may
 * add: nothing of a tenant or of the host is in it. It runs under the engine's default runtime, since a commit may not find what is
 * written under another.
 */
export function rootSetUpSpec(
  { setup, network, dns, extraHosts, apparmor, limits }: SandboxProfile,
  imageId: string,
  seccomp: string | undefined,
): Docker.ContainerCreateOptions {
  const { memoryBytes, swapBytes, cpus, pids, openFiles } = limits;
  const profile = sandboxProfile.parse({
    ...{ image: imageId, network: setup.network ?? network, dns, extraHosts, apparmor },
    // No limit on a file's size: a package may have large files.
    limits: { memoryBytes, swapBytes, cpus, pids, openFiles, workspaceBytes: 0 },
  });
  const { StorageOpt: _, ...hostConfig }: Docker.HostConfig =
    containerSpec({
      ...{ profile, initPath: "", linkDirectory: "", etcFiles: [], hostMounts: [], disk: undefined },
      workspace: { path: "", user: "0:0", ownUid: false, sharesUid: true },
      ...{ shared: { directories: [], gid: undefined }, seccomp, imageVolumes: [] },
    }).HostConfig ?? {};
  return {
    ...{ Hostname: "sandbox", User: "0:0", WorkingDir: "/", Healthcheck: { Test: ["NONE"] } },
    ...{ Entrypoint: ["sh", "-c"], Cmd: [setup.command], Tty: false, OpenStdin: false },
    ...{ Image: imageId, NetworkDisabled: profile.network === "none" },
    HostConfig: {
      ...hostConfig,
      CapAdd: capabilities,
      ReadonlyRootfs: false,
      Tmpfs: {},
      Mounts: [],
      // The worker reads the log when the command has ended. It is removed with the container.
      LogConfig: { Type: "json-file", Config: { "max-size": "64k", "max-file": "2" } },
    },
  };
}
