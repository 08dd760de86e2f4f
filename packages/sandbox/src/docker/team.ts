import { chmod, lstat, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  Fault,
  type SandboxKey,
  type SandboxProfile,
  sandboxProfile,
  type TenantId,
  teamDirectory,
} from "@berth/protocol";
import type { StartRequest } from "../port.ts";
import type { SnapshotReport } from "../team-snapshot.ts";
import { ignoreExisting } from "./host-files.ts";
import { type SharedDirectory, sharedFolders } from "./shared-directories.ts";

/** The file in /team that describes each peer's copy. */
const reportName = ".snapshots.json";

/** On the host: one directory for each sandbox. No process of a tenant writes there. */
function teamPath(key: SandboxKey, root: string): string {
  return join(root, sharedFolders.team, key);
}

/** Makes the sandbox's directory, and removes the copies of tenants that are no peers any more. Undefined: it has no peers. */
export async function prepareTeam(
  key: SandboxKey,
  peers: readonly TenantId[],
  root: string,
): Promise<SharedDirectory | undefined> {
  const source = teamPath(key, root);
  try {
    if (peers.length === 0) {
      await rm(source, { recursive: true, force: true });
      return undefined;
    }
    await mkdir(join(root, sharedFolders.team), { mode: 0o700 }).catch(ignoreExisting);
    await mkdir(source).catch(ignoreExisting);
    await chmod(source, 0o755);
    const names: ReadonlySet<string> = new Set(peers);
    const old = (await readdir(source)).filter((name) => !names.has(name));
    await Promise.all(old.map((name) => rm(join(source, name), { recursive: true, force: true })));
    return { source, target: teamDirectory, access: "ro" };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path: source, detail }, { cause: error });
  }
}

export async function removeTeam(key: SandboxKey, root: string): Promise<void> {
  await rm(teamPath(key, root), { recursive: true, force: true });
}

/** Without a workspace there is nothing to copy. */
export async function hasWorkspace(key: SandboxKey, root: string): Promise<boolean> {
  const found = await lstat(join(root, key)).catch(() => undefined);
  return found?.isDirectory() === true;
}

export async function writeReports(
  source: string,
  reports: ReadonlyMap<string, SnapshotReport>,
): Promise<void> {
  const path = join(source, reportName);
  await writeFile(path, `${JSON.stringify(Object.fromEntries(reports), null, 2)}\n`);
  await chmod(path, 0o644);
}

/** The request of the container that copies: only init runs in it, on the peer's workspace, mounted read-only. */
export function copierRequest(
  { key, epoch, leaseMs, leaseLeftMs, isHeld, profile }: StartRequest,
  peer: TenantId,
): StartRequest {
  // No sandbox has a key of four or more names, so this one belongs to none.
  const apart = `${key}.team.of.${peer}` as SandboxKey;
  return { key: apart, epoch, leaseMs, leaseLeftMs, isHeld, profile: copierProfile(profile) };
}

function copierProfile({ image, runtime, apparmor }: SandboxProfile): SandboxProfile {
  // The kernel counts a uid's processes on the whole host. The peer's own processes must not keep this init from starting.
  return sandboxProfile.parse({ image, runtime, apparmor, workspace: "ro", limits: { pids: 32_768 } });
}
