import { chmod, chown, lstat, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { agentDirectory, agentIn, Fault, sharedOwner, tenantOf, toolsDirectory } from "@berth/protocol";
import type { StartRequest } from "../port.ts";
import { ignoreExisting } from "./host-files.ts";
import { allocateId, type WorkspaceOptions } from "./workspace.ts";

/** A directory that sandboxes of one tenant have in common, and that outlives them. */
export interface SharedDirectory {
  /** On the host. */
  readonly source: string;
  readonly target: string;
  readonly access: "ro" | "rw";
}

export interface SharedHome {
  readonly directories: readonly SharedDirectory[];
  /** Each sandbox has its own uid, so shared directories belong to a group of the tenant. */
  readonly gid: number | undefined;
}

const parentMode = 0o700;
/** Setgid: files that are made in the directory get its group. */
const groupMode = 0o2770;

/** Folders beside the workspaces. Each directory in them is named by its tenant, or by tenant and agent. */
export const sharedFolders = { tools: ".tools", agents: ".agents", team: ".team" } as const;

/** Makes the shared directories that the profile names. The worker touches only the directory itself, never what is in it. */
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

/** A number from the range of the sandboxes' uids. No sandbox has it as its uid. */
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
    // The mode before the owner: without CAP_FSETID the setgid bit can only be set while the group is one of the worker's own.
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
