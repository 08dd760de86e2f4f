import { chmod, chown, lstat, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import {
  Fault,
  isFault,
  quotaText,
  type SandboxKey,
  type SandboxProfile,
  type SnapshotMethod,
} from "@berth/protocol";
import type { CallOptions } from "../../port.ts";
import type { QuotaExceeded } from "../../quota-guard.ts";
import type { TakenTree, TreeOnDisk, TreeOrigin, TreeOwner, Trees } from "../../trees.ts";
import type { DiskFloor } from "../disk-floor.ts";
import { isThere } from "../host-files.ts";
import type { WorkspaceQuotas } from "../quota/workspace-quotas.ts";
import { prepareWorkspace, type WorkspaceOptions } from "../workspace.ts";
import { forgetOrigin, noteOrigin, readOrigin } from "./fork-origin.ts";
import { type HostTool, isBtrfs, isSubvolume } from "./host-tool.ts";
import type { TreeContainer, TreeCopy } from "./tree-container.ts";
import { type Owner, TreePaths } from "./tree-paths.ts";

interface MadeTree {
  readonly path: string;
  readonly method: SnapshotMethod;
}

export interface DockerTreesParts {
  readonly root: string;
  readonly quotas: Pick<
    WorkspaceQuotas,
    "mount" | "unmount" | "unmountFrom" | "limitNew" | "isImageForNew" | "mountNew" | "keepNew" | "dropNew"
  >;
  readonly workspaces: () => Promise<WorkspaceOptions>;
  readonly container: TreeContainer;
  readonly tool: HostTool;
  readonly floor: Pick<DiskFloor, "whileRoom">;
}

/**
 * Snapshots as directories beside the workspaces, on the same file system.
 *
 *   workspace ──subvolume, or a copy under another name that is renamed──▶ .snapshots/ID
 *   .snapshots/ID ──the same way──▶ a new workspace, or one that takes the old one's name in one step
 *
 * On btrfs the file system copies. Elsewhere a container that runs as the tree's owner copies file by file, and shares blocks where the
 * file system can. A copy keeps its owner, so a fork has the uid of the sandbox that the snapshot was made of.
 */
export class DockerTrees implements Trees {
  readonly #parts: DockerTreesParts;
  readonly #paths: TreePaths;

  constructor(parts: DockerTreesParts) {
    this.#parts = parts;
    this.#paths = new TreePaths(parts.root);
  }

  async take(
    { key, profile }: TreeOwner,
    id: string,
    measured: { readonly entries: number; readonly bytes: number },
    call: CallOptions,
  ): Promise<TakenTree> {
    return this.#parts.floor.whileRoom(call.signal, diskFault, async (signal) => {
      const { isImage, ...workspace } = await this.#workspace(key, profile);
      try {
        return await this.#take({ ...workspace, profile }, id, measured, { signal });
      } finally {
        if (isImage) await this.#parts.quotas.unmount(key);
      }
    });
  }

  async #take(
    {
      path,
      user,
      profile,
    }: { readonly path: string; readonly user: string; readonly profile: SandboxProfile },
    id: string,
    measured: { readonly entries: number; readonly bytes: number },
    call: CallOptions,
  ): Promise<TakenTree> {
    const { tool, container } = this.#parts;
    const owner = await lstat(path);
    await this.#paths.prepare();
    await this.#paths.noteShared(owner);
    if (await this.#isVolume(path)) {
      await tool.volume("freeze", path, this.#paths.snapshot(id));
      return { method: "btrfs", ...measured };
    }
    const aside = await this.#paths.makeAside(owner);
    return await this.#orCleared(aside, profile, async () => {
      const copied = await container.copy({ user, profile, path: aside, from: path }, call);
      await rename(aside, this.#paths.snapshot(id));
      return { method: methodOf(copied), entries: copied.entries, bytes: measured.bytes };
    });
  }

  async restore(
    owner: TreeOwner,
    id: string,
    { check, signal }: CallOptions & { readonly check: () => void },
  ): Promise<SnapshotMethod> {
    const { key, profile } = owner;
    const { tool, quotas } = this.#parts;
    const { path, isImage } = await this.#workspace(key, profile);
    if (isImage) await quotas.unmount(key);
    const { path: aside, method } = await this.#copyOf(id, owner, isImage, { signal });
    try {
      check();
      if (isImage) await quotas.keepNew(aside, key);
      else await tool.volume("swap", aside, path);
      return method;
    } finally {
      // Now the old workspace, or the copy if it was not used.
      await this.#dropTree(aside, owner, isImage);
    }
  }

  async originOf(key: SandboxKey): Promise<TreeOrigin> {
    return readOrigin(key, this.#parts.root);
  }

  async fork(
    owner: TreeOwner,
    { id, name }: { readonly id: string; readonly name: string },
    call: CallOptions,
  ): Promise<void> {
    const { root, quotas } = this.#parts;
    const { key, profile } = owner;
    const place = join(root, key);
    await refuseExisting(place);
    const isImage = await quotas.isImageForNew(profile.limits);
    const { path: aside } = await this.#copyOf(id, owner, isImage, call);
    try {
      await refuseExisting(place);
      if (isImage) await quotas.keepNew(aside, key);
      await noteOrigin(key, root, name);
      if (!isImage) await rename(aside, place);
    } catch (error) {
      await forgetOrigin(key, root);
      await this.#dropTree(aside, owner, isImage).catch(() => {});
      throw error;
    }
    if (isImage) await rmdir(aside);
  }

  async remove(id: string, profile: SandboxProfile, call: CallOptions): Promise<void> {
    const aside = this.#paths.aside();
    try {
      await rename(this.#paths.snapshot(id), aside);
    } catch (error) {
      // Another worker of this host removes it.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    await this.#removeTree(aside, profile, call);
  }

  list(): Promise<readonly TreeOnDisk[]> {
    return this.#paths.snapshots();
  }

  async removeLeftovers(profile: SandboxProfile, call: CallOptions): Promise<void> {
    for (const path of await this.#paths.leftovers()) await this.#removeTree(path, profile, call);
  }

  /** Mounts the workspace if it is an image, and prepares its directory. */
  async #workspace(key: SandboxKey, { user, limits }: SandboxProfile) {
    const isImage = await this.#parts.quotas.mount(key, limits, { creates: false });
    return { isImage, ...(await prepareWorkspace(key, { ...(await this.#parts.workspaces()), user })) };
  }

  /** Copies a snapshot to a temporary name. The caller renames it. */
  #copyOf(id: string, owner: TreeOwner, isImage: boolean, { signal }: CallOptions): Promise<MadeTree> {
    const make = (bounded: AbortSignal) => this.#makeCopy(id, owner, isImage, { signal: bounded });
    return this.#parts.floor.whileRoom(signal, diskFault, make);
  }

  async #makeCopy(id: string, work: TreeOwner, isImage: boolean, call: CallOptions): Promise<MadeTree> {
    const { quotas } = this.#parts;
    const { key, profile } = work;
    const from = this.#paths.snapshot(id);
    const owner = await lstat(from).catch(refuseRemoved);
    refuseOtherUser(owner, profile);
    await this.#paths.noteShared(owner);
    const user = await this.#userOf(owner);
    const isVolume = !isImage && (await this.#isVolume(from));
    const path = isVolume ? this.#paths.aside() : await this.#makeAside(owner, isImage);
    return await this.#orDropped(path, work, isImage, async () => {
      if (isImage) await this.#mountNew(path, work, owner);
      const method = isVolume ? await this.#snapshotVolume(from, path) : undefined;
      if (!isImage) await quotas.limitNew(path, key, profile.limits);
      const made = method ?? (await this.#copy(from, path, { user, profile }, call));
      // A worker that removes a snapshot renames it first. If the name is gone, files may be missing in the copy.
      await lstat(from).catch(refuseRemoved);
      return { path, method: made };
    });
  }

  /** On btrfs this is a subvolume, like every workspace. */
  async #makeAside(owner: Owner, isImage: boolean): Promise<string> {
    const { makeDirectory } = await this.#parts.workspaces();
    return this.#paths.makeAside(owner, isImage ? undefined : makeDirectory);
  }

  async #mountNew(path: string, { key, profile }: TreeOwner, { uid, gid }: Owner): Promise<void> {
    await this.#parts.quotas.mountNew(path, key, profile.limits);
    await chmod(path, 0o700);
    await chown(path, uid, gid);
  }

  async #orDropped<T>(path: string, owner: TreeOwner, isImage: boolean, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      await this.#dropTree(path, owner, isImage).catch(() => {});
      throw error;
    }
  }

  /** Removes a copy that did not become a workspace, or the workspace that a copy replaced. */
  async #dropTree(path: string, { key, profile }: TreeOwner, isImage: boolean): Promise<void> {
    if (!isImage) return this.#removeTree(path, profile, {});
    await this.#parts.quotas.dropNew(path, key);
    // The directory beneath the mount is empty.
    await rmdir(path);
  }

  async #snapshotVolume(from: string, path: string): Promise<SnapshotMethod> {
    await this.#parts.tool.volume("snapshot", from, path);
    return "btrfs";
  }

  async #copy(
    from: string,
    path: string,
    work: { readonly user: string; readonly profile: SandboxProfile },
    call: CallOptions,
  ): Promise<SnapshotMethod> {
    return methodOf(await this.#parts.container.copy({ ...work, path, from }, call));
  }

  async #isVolume(path: string): Promise<boolean> {
    return isSubvolume(await lstat(path)) && (await isBtrfs(path));
  }

  async #orCleared<T>(path: string, profile: SandboxProfile, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      // If this fails, `removeLeftovers` removes it later.
      await this.#removeTree(path, profile, {}).catch(() => {});
      throw error;
    }
  }

  async #removeTree(path: string, profile: SandboxProfile, call: CallOptions): Promise<void> {
    // A worker that died while it filled an image left it mounted.
    await this.#parts.quotas.unmountFrom(path);
    if (await this.#isVolume(path)) {
      const isGone = await this.#parts.tool.volume("delete", path).then(
        () => true,
        // The tenant made subvolumes in it, or the worker is not root.
        (error: unknown) => {
          if (isFault(error)) return false;
          throw error;
        },
      );
      if (isGone) return;
    }
    const user = await this.#userOf(await lstat(path));
    await this.#parts.container.clear({ user, profile, path }, call);
    await rmdir(path);
  }

  /** The user as which a container has the owner's rights. */
  async #userOf({ uid, gid }: Owner): Promise<string> {
    return (await this.#parts.workspaces()).rootlessEngine ? "0:0" : `${uid}:${gid}`;
  }
}

/** Files without bytes have no blocks to share, so a tree of empty files counts as copied. */
function methodOf({ shared, copied }: TreeCopy): SnapshotMethod {
  return shared > 0 && copied === 0 ? "reflink" : "copy";
}

/** A copy belongs to the uid of the sandbox that the snapshot was made of. A sandbox with another user could not use it. */
function refuseOtherUser({ uid, gid }: Owner, { user }: SandboxProfile): void {
  if (user === undefined || process.getuid?.() !== 0 || user === `${uid}:${gid}`) return;
  const detail = `its files belong to the user ${uid}:${gid}, and the profile's user is ${user}`;
  throw new Fault("snapshot-refused", { reason: "other-user", detail });
}

async function refuseExisting(place: string): Promise<void> {
  if (await isThere(place))
    throw new Fault("snapshot-refused", { reason: "own-files", detail: "it has a workspace already" });
}

function diskFault(low: QuotaExceeded): Fault {
  return new Fault("snapshot-refused", { reason: "no-space", detail: quotaText(low) });
}

function refuseRemoved(cause: unknown): never {
  throw new Fault(
    "snapshot-refused",
    { reason: "removed", detail: "the snapshot was removed meanwhile" },
    { cause },
  );
}
