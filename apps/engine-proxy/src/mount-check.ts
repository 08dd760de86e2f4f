import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import { type ContainerRules, mountRules } from "@berth/sandbox/container";

export interface Mount {
  readonly Source: string;
  readonly Target: string;
}

/**
 * Why what a container mounts is not what its paths say; empty when it is. The worker can write to the folder of the
 * workspaces, and the engine follows links: one that leads elsewhere would be mounted in a workspace's place. The proxy asks
 * before a container is made and again before each start, which is when the engine looks.
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
    return `${source} cannot be looked at: ${error instanceof Error ? error.message : error}`;
  }
}
