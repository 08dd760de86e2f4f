import { createHash, randomUUID } from "node:crypto";
import { chmod, chown, lstat, mkdir, readlink, rm, rmdir, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Fault, type SandboxKey } from "@berth/protocol";
import { ignoreExisting, isThere } from "./host-files.ts";

export interface WorkspaceOptions {
  /** Holds one directory per sandbox, 0700. Must be the same path for the engine. */
  readonly root: string;
  readonly uids: UidRange;
  /** The engine runs without root: its container root is the engine's own user on the host. */
  readonly rootlessEngine: boolean;
  /** Makes a workspace's directory. Absent: an ordinary one. */
  readonly makeDirectory?: ((path: string) => Promise<void>) | undefined;
}

export interface UidRange {
  readonly first: number;
  readonly count: number;
}

/** Above the uids that distributions give to people and services, and above the usual start of their subordinate ranges. */
export const defaultUids: UidRange = { first: 2_000_000, count: 1_000_000 };

export interface WorkspaceHome {
  readonly path: string;
  /** `uid:gid` for the container. */
  readonly user: string;
  /** The worker allocated the uid to this sandbox. */
  readonly ownUid: boolean;
  /** Other sandboxes may have the same uid, such as forks of one snapshot. */
  readonly sharesUid: boolean;
}

const workspaceMode = 0o700;

/**
 * Makes the directory that outlives containers and workers. The worker touches only the directory itself, whose parent is the worker's
 * own. It never opens, reads or follows anything beneath it.
 */
export async function prepareWorkspace(
  key: SandboxKey,
  options: WorkspaceOptions & { readonly user?: string | undefined },
): Promise<WorkspaceHome> {
  const path = join(options.root, key);
  try {
    await makeRoot(options.root);
    const make = options.makeDirectory ?? ((made) => mkdir(made, { mode: workspaceMode }));
    const before = await lstat(path).catch(() => undefined);
    if (before === undefined) await make(path).catch(ignoreExisting);
    const found = before ?? (await lstat(path));
    if (!found.isDirectory()) throw new Error("it is not a directory");
    if ((found.mode & 0o7777) !== workspaceMode) await chmod(path, workspaceMode);
    if (options.user !== undefined) return await ownedBy(options.user, path);
    if (options.rootlessEngine) return { path, user: "0:0", ownUid: false, sharesUid: true };
    if (process.getuid?.() !== 0) {
      const user = `${process.getuid?.()}:${process.getgid?.()}`;
      return { path, user, ownUid: false, sharesUid: true };
    }
    const uid = found.uid === 0 ? await allocateId(key, options) : found.uid;
    if (found.uid !== uid) await chown(path, uid, uid);
    const sharesUid = await isThere(sharedUidPath(options.root, uid));
    return { path, user: `${uid}:${uid}`, ownUid: true, sharesUid };
  } catch (error) {
    if (error instanceof Fault) throw error;
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}

/** A uid that the operator chose: other sandboxes and other programs of the host may have the same. */
async function ownedBy(user: string, path: string): Promise<WorkspaceHome> {
  const [uid = 0, gid = 0] = user.split(":").map(Number);
  const found = await lstat(path);
  if (found.uid !== uid || found.gid !== gid) await chown(path, uid, gid);
  return { path, user, ownUid: false, sharesUid: true };
}

/** This file exists once a snapshot's files belong to that uid, so that several sandboxes may have it. */
export function sharedUidPath(root: string, uid: number): string {
  return join(root, ".uids", `${uid}.shared`);
}

/**
 * Gives a workspace back the permissions that its tenant took away: without them init can neither measure nor empty it. True when any
 * were missing.
 */
export async function unlockWorkspace(path: string): Promise<boolean> {
  const found = await lstat(path);
  if (!found.isDirectory() || (found.mode & 0o7777) === workspaceMode) return false;
  await chmod(path, workspaceMode);
  return true;
}

/** Creates the root if it is missing, and proves by writing that workspaces can be created there. */
export async function probeWorkspaces(root: string): Promise<void> {
  const probe = join(root, `.probe-${randomUUID()}`);
  try {
    await makeRoot(root);
    await writeFile(probe, "written to see whether this directory can be used\n");
    await rm(probe);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path: root, detail }, { cause: error });
  }
}

/** Throws, and leaves the workspace, if it is not empty. The sandbox keeps its uid, as its key may come back. */
export async function removeEmptyWorkspace(key: SandboxKey, root: string): Promise<void> {
  const path = join(root, key);
  try {
    await rmdir(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    const detail = error instanceof Error ? error.message : String(error);
    throw new Fault("workspace-unusable", { path, detail }, { cause: error });
  }
}

/**
 * Allocates a uid that no other sandbox has: makes a symbolic link that is named by the uid and points at the key, or tries the next uid.
 * Making a link is atomic, so two workers on one host never give the same uid to two sandboxes.
 */
export async function allocateId(
  key: string,
  { root, uids }: Pick<WorkspaceOptions, "root" | "uids">,
): Promise<number> {
  const directory = join(root, ".uids");
  await mkdir(directory, { mode: 0o700 }).catch(ignoreExisting);
  // The root is hashed too: else two fleets on one host would give the same tenant the same uid, and the kernel counts a uid's
  // processes on the whole host.
  const start = createHash("sha256").update(`${root}\0${key}`).digest().readUInt32BE(0) % uids.count;
  for (let step = 0; step < uids.count; step++) {
    const uid = uids.first + ((start + step) % uids.count);
    const link = join(directory, String(uid));
    try {
      await symlink(key, link);
      return uid;
    } catch (error) {
      ignoreExisting(error);
      if ((await readlink(link)) === key) return uid;
    }
  }
  throw new Error(`all ${uids.count} uids are taken; the links in ${directory} name their sandboxes`);
}

/** Instead of Node's own `recursive`, which tries for ever in a file system such as /proc that refuses with ENOENT. */
export async function makeRoot(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o711 }).catch(ignoreExisting);
  } catch (error) {
    const parent = dirname(path);
    const hasParent = await stat(parent).then(
      () => true,
      () => false,
    );
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || hasParent || parent === path) throw error;
    await makeRoot(parent);
    await mkdir(path, { mode: 0o711 }).catch(ignoreExisting);
  }
}
