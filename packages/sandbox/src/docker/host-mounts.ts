import { realpath } from "node:fs/promises";
import { sep } from "node:path";
import { Fault, type SandboxProfile } from "@berth/protocol";
import type Docker from "dockerode";

type Mounted = Pick<SandboxProfile, "mounts" | "mountable">;

/**
 * The host's directories that a profile mounts, with their links resolved. Each has to lie beneath one of `allowed`, a setting of the
 * worker: an operator who can only change profiles cannot reach the rest of the host. None may lie beneath a directory that the profile
 * mounts writable: a tenant could put a link in its place, which the engine would follow later.
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
      const above = (await writable(mountable)).find(
        (one) => one.name !== name && one.source !== source && isBeneath(source, one.source),
      );
      if (above)
        throw refused(
          name,
          `${mount.source} lies beneath ${above.name} of its mountable, which is rw: a tenant that writes there could replace it`,
        );
      return { Type: "bind", Source: source, Target: mount.target, ReadOnly: mount.access === "ro" };
    }),
  );
}

/** Also those that this sandbox does not mount: other sandboxes may have them. */
async function writable(
  mountable: Mounted["mountable"],
): Promise<{ readonly name: string; readonly source: string }[]> {
  const all = Object.entries(mountable).filter(([, { access }]) => access === "rw");
  return await Promise.all(
    all.map(async ([name, { source }]) => ({ name, source: await realpath(source).catch(() => source) })),
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
