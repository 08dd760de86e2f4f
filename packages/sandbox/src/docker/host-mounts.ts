import { realpath } from "node:fs/promises";
import { sep } from "node:path";
import { Fault, type SandboxProfile } from "@berth/protocol";
import type Docker from "dockerode";

type Mounted = Pick<SandboxProfile, "mounts" | "mountable">;

/**
 * The host's directories that a profile mounts. Each has to lie beneath one of `allowed`, which the host's own operator gives the worker:
 * who can only change profiles cannot reach the rest of the host. Links are followed before that is compared.
 */
export async function hostMounts(
  { mounts, mountable }: Mounted,
  allowed: readonly string[],
): Promise<Docker.MountSettings[]> {
  return await Promise.all(
    mounts.map(async (name) => {
      const mount = mountable[name];
      if (!mount) throw refused(name, "the profile's mountable has no such name");
      const source = await resolved(name, mount.source);
      const roots = await Promise.all(allowed.map((root) => realpath(root).catch(() => undefined)));
      if (!roots.some((root) => root !== undefined && isBeneath(source, root)))
        throw refused(name, `${mount.source} is not beneath a directory of this worker's BERTH_MOUNTS`);
      return { Type: "bind", Source: source, Target: mount.target, ReadOnly: mount.access === "ro" };
    }),
  );
}

async function resolved(name: string, source: string): Promise<string> {
  try {
    return await realpath(source);
  } catch (error) {
    throw refused(name, `${source} cannot be used: ${(error as Error).message}`);
  }
}

function isBeneath(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

function refused(mount: string, detail: string): Fault {
  return new Fault("mount-refused", { mount, detail });
}
