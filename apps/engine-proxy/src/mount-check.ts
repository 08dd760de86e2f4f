import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import { type ContainerRules, mountRules } from "@berth/sandbox/container";

export interface Mount {
  readonly Source: string;
  readonly Target: string;
}

/**
 * Checks that the mounts' paths are the files that they name; returns a complaint for each that is not. The worker can write
 * to the folder of the workspaces, and the engine follows links: it would mount the place that a link leads to. The proxy
 * checks before it creates a container and again before each start, because the engine resolves the paths at the start.
 */
export async function mountComplaints(
  mounts: readonly Mount[],
  user: string,
  rules: Pick<ContainerRules, "workspacesRoot" | "rootless">,
): Promise<string[]> {
  const found = await Promise.all(mounts.map((mount) => complaint(mount, user, rules)));
  return found.filter((one) => one !== undefined);
}

async function complaint(
  { Source: source, Target: target }: Mount,
  user: string,
  { workspacesRoot, rootless }: Pick<ContainerRules, "workspacesRoot" | "rootless">,
): Promise<string | undefined> {
  const rule = mountRules.find((one) => one.target === target);
  if (!rule) return `nothing is mounted at ${target} in a sandbox`;
  try {
    const parent = dirname(source);
    if (parent !== workspacesRoot && !(await lstat(parent)).isDirectory())
      return `${parent} is not a directory`;
    const facts = await lstat(source);
    if (!(rule.is === "directory" ? facts.isDirectory() : facts.isFile()))
      return `${source} is not a ${rule.is}`;
    if (rule.ownedByUser && !rootless && String(facts.uid) !== user.split(":")[0])
      return `${source} belongs to uid ${facts.uid}, not to the container's user ${user}`;
    return undefined;
  } catch (error) {
    return `${source} cannot be inspected: ${error instanceof Error ? error.message : error}`;
  }
}
