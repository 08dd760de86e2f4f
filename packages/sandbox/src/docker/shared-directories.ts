import { chmod, chown, lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { agentDirectory, agentIn, Fault, sharedOwner, tenantOf, toolsDirectory } from "@berth/protocol";
import type { StartRequest } from "../port.ts";
import { allocateId, type WorkspaceOptions } from "./workspace.ts";

/** A directory that several sandboxes of one tenant have, and that outlives them. */
export interface SharedDirectory {
  /** On the host. */
  readonly source: string;
  readonly target: string;
  readonly access: "ro" | "rw";
}

export interface SharedHome {
  readonly directories: readonly SharedDirectory[];
  /** Sandboxes have users of their own, so what they share belongs to a group of the tenant's. */
  readonly gid: number | undefined;
}

const parentMode = 0o700;
/** Setgid: what is made in it has its group. */
const groupMode = 0o2770;

/** Folders beside the workspaces, each directory named by its tenant, or tenant and agent. */
export const sharedFolders = { tools: ".tools", agents: ".agents", team: ".team" } as const;

/** Makes those that the profile names. As with a workspace, only the directory itself is touched from the host, never what is in it. */
export async function prepareShared(
  { key, agent = agentIn(key) ?? "default", profile }: Pick<StartRequest, "key" | "agent" | "profile">,
  options: WorkspaceOptions,
): Promise<SharedHome> {
  const tenant = tenantOf(key);
  const { agentAccess, toolsAccess } = profile;
  if (tenant === sharedOwner || (agentAccess === "none" && toolsAccess === "none"))
    return { directories: [], gid: undefined };
  const folders = [
    { folder: sharedFolders.agents, name: `${tenant}.${agent}`, target: agentDirectory, access: agentAccess },
    { folder: sharedFolders.tools, name: tenant, target: toolsDirectory, access: toolsAccess },
  ];
  const hasGroup = process.getuid?.() === 0 && !options.rootlessEngine;
  const gid = hasGroup ? await groupOf(tenant, options) : undefined;
  const directories: SharedDirectory[] = [];
  for (const { folder, name, target, access } of folders) {
    if (access === "none") continue;
    const source = join(options.root, folder, name);
    await makeShared(join(options.root, folder), source, gid);
    directories.push({ source, target, access });
  }
  return { directories, gid };
}

/** A number beside the sandboxes' uids: no sandbox has it as its user. */
function groupOf(tenant: string, options: WorkspaceOptions): Promise<number> {
  return allocateId(`group of ${tenant}`, options);
}

async function makeShared(parent: string, path: string, gid: number | undefined): Promise<void> {
  try {
    await mkdir(parent, { mode: parentMode }).catch(ignoreExisting);
    await mkdir(path, { mode: parentMode }).catch(ignoreExisting);
    const found = await lstat(path);
    if (!found.isDirectory()) throw new Error("it is not a directory");
    if (gid === undefined) return;
    // The mode first: without CAP_FSETID the setgid bit can only be given to a group of one's own.
    if ((found.mode & 0o7777) !== groupMode) {
      await chown(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
      await chmod(path, groupMode);
    }
    if ((await lstat(path)).gid !== gid) await chown(path, process.getuid?.() ?? 0, gid);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}

function ignoreExisting(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
}
