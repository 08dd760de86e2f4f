import { lstat } from "node:fs/promises";
import path from "node:path";

/**
 * Whether what a container mounts is what its paths say. The worker can write to the folder of the workspaces, and the engine
 * follows links: one that leads elsewhere would be mounted in a workspace's place. Asked before a container is made and again
 * before each start, which is when the engine looks.
 *
 * @param {{ Type?: string, Source?: string, Target?: string }[]} mounts that fit the rules as text
 * @param {string} user of the container
 * @param {Pick<import('./container-rules.mjs').Rules, 'workspaces' | 'rootless'>} rules
 * @returns {Promise<string[]>} why not; empty when it is
 */
export async function mountComplaints(mounts, user, rules) {
  const found = await Promise.all(mounts.map((mount) => complaint(mount, user, rules)));
  return found.filter((one) => one !== undefined);
}

async function complaint({ Source: source = "", Target: target = "" }, user, { workspaces, rootless }) {
  try {
    const isWorkspace = target === "/workspace";
    const parent = path.dirname(source);
    if (parent !== workspaces && !(await lstat(parent)).isDirectory()) return `${parent} is not a directory`;
    const facts = await lstat(source);
    if (!(isWorkspace ? facts.isDirectory() : facts.isFile()))
      return `${source} is not a ${isWorkspace ? "directory" : "file"}`;
    if (isWorkspace && !rootless && String(facts.uid) !== user.split(":")[0])
      return `${source} belongs to uid ${facts.uid}, not to the container's user ${user}`;
    return undefined;
  } catch (error) {
    return `${source} cannot be looked at: ${error instanceof Error ? error.message : error}`;
  }
}
