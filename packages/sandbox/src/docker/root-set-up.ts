import { type SandboxProfile, sandboxProfile } from "@berth/protocol";
import type Docker from "dockerode";
import { containerSpec } from "./container-spec.ts";

/** What package managers need: to give files away and to change into their own users. Nothing that reaches the host. */
const capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID"];

/** The set-up command runs as root, in an image of its own. */
export function setsUpAsRoot({ setup }: SandboxProfile): boolean {
  return setup.root && setup.command !== "";
}

/** Of a sandbox whose image is set up already. */
export function derivedProfile(profile: SandboxProfile, image: string): SandboxProfile {
  return { ...profile, image, setup: { ...profile.setup, command: "" } };
}

/**
 * The container in which a set-up command runs as root. Nothing of a tenant's or of the host's is in it: no mount, no link, no variable
 * of the profile's, which tenants may add to. The engine's own runtime: others may keep what is written where a commit does not find it.
 */
export function rootSetUpSpec(
  { setup, network, dns, extraHosts, apparmor, limits }: SandboxProfile,
  imageId: string,
  seccomp: string | undefined,
): Docker.ContainerCreateOptions {
  const { memoryBytes, swapBytes, cpus, pids, openFiles } = limits;
  const profile = sandboxProfile.parse({
    ...{ image: imageId, network: setup.network ?? network, dns, extraHosts, apparmor },
    // A file may be as large as the package has it.
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
      // Read when the command has ended, and gone with the container.
      LogConfig: { Type: "json-file", Config: { "max-size": "64k", "max-file": "2" } },
    },
  };
}
