import { lstat, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { capOf, Fault, type QuotaBackend, type SandboxKey, type WorkspaceUsage } from "@berth/protocol";
import type { DiskUsage } from "../../quota-guard.ts";
import type { HostTool } from "../trees/host-tool.ts";
import { allocateId, makeRoot, type UidRange } from "../workspace.ts";
import { BtrfsQuota } from "./btrfs-quota.ts";
import { ImageQuota, type QuotaLimits } from "./image-quota.ts";
import { isMountPoint } from "./mounts.ts";
import { ProjectQuota } from "./project-quota.ts";

/** What bounds one workspace. `walk`: init counts its files periodically, and stops commands that grow it past the limit. */
export type QuotaKind = Exclude<QuotaBackend, "auto">;

/** The quota backend of new workspaces on a host. */
export interface QuotaChoice {
  readonly kind: QuotaKind;
  /** Why the chosen backend cannot be had; or, with `auto`, why the file system has no quotas. */
  readonly problem?: string;
}

/** Inodes of an ext4 image that belong to no file: ext4's own ten. */
const imageInodes = 10;

/** Bounds the workspaces of a host by its file system, where it can. */
export class WorkspaceQuotas {
  readonly #root: string;
  readonly #backend: QuotaBackend;
  readonly #images: ImageQuota;
  readonly #projects: ProjectQuota;
  readonly #btrfs: BtrfsQuota;
  readonly #numbers: (name: string) => Promise<number>;
  #chosen: QuotaChoice | undefined;

  constructor(root: string, backend: QuotaBackend, { tool, uids }: WorkspaceQuotasParts) {
    this.#root = root;
    this.#backend = backend;
    this.#numbers = (name) => allocateId(name, { root, uids });
    this.#images = new ImageQuota(root);
    this.#projects = new ProjectQuota(root, tool);
    this.#btrfs = new BtrfsQuota(root, tool);
  }

  async choice(): Promise<QuotaChoice> {
    this.#chosen ??= await this.#choose();
    return this.#chosen;
  }

  async #choose(): Promise<QuotaChoice> {
    switch (this.#backend) {
      case "walk":
        return { kind: "walk" };
      case "image":
        return process.getuid?.() === 0
          ? { kind: "image" }
          : { kind: "image", problem: "the worker is not root" };
      case "project":
        return withProblem("project", await this.#projects.problem());
      case "btrfs":
        return withProblem("btrfs", await this.#btrfs.problem({ enables: true }));
      case "auto": {
        if ((await this.#btrfs.problem({ enables: false })) === undefined) return { kind: "btrfs" };
        const problem = await this.#projects.problem();
        return problem === undefined ? { kind: "project" } : { kind: "walk", problem };
      }
    }
  }

  /** Call before the workspace's directory is made or used. True: the workspace is an image, which is mounted now. */
  async mount(
    key: SandboxKey,
    limits: QuotaLimits,
    { creates }: { readonly creates: boolean },
  ): Promise<boolean> {
    const { kind, problem } = await this.choice();
    try {
      if (problem !== undefined && kind !== "walk") throw new Error(problem);
      if (kind === "btrfs" || kind === "image") await makeRoot(this.#root);
      const has = await this.#images.has(key);
      if (!has && !(creates && kind === "image" && (await this.#isFresh(key, limits)))) return false;
      await this.#images.mount(key, limits);
      return true;
    } catch (error) {
      throw this.#unusable(key, error);
    }
  }

  /** Call when the workspace's directory exists. Returns what bounds it. */
  async limit(key: SandboxKey, limits: QuotaLimits): Promise<QuotaKind> {
    const { kind } = await this.choice();
    const path = join(this.#root, key);
    try {
      if (kind === "btrfs" && (await this.#btrfs.limit(path, limits))) return "btrfs";
      if (kind !== "project") return "walk";
      const [first, second] = await this.#numbersOf(key, await this.#projects.numberOf(path));
      return (await this.#projects.limit(path, first, limits)) ||
        (second !== undefined && (await this.#projects.limit(path, second, limits)))
        ? "project"
        : "walk";
    } catch (error) {
      throw this.#unusable(key, error);
    }
  }

  /** Sets the limits of an empty directory, or of a fresh subvolume, that is to become the workspace, before files are copied into it. */
  async limitNew(path: string, key: SandboxKey, limits: QuotaLimits): Promise<void> {
    const { kind } = await this.choice();
    if (kind === "btrfs") await this.#btrfs.limit(path, limits);
    if (kind !== "project") return;
    const before = await this.#projects.numberOf(join(this.#root, key)).catch(() => 0);
    const own = await this.#numbers(key);
    // While both trees exist, each has a number of its own.
    const number = before === own ? await this.#numbers(spareOf(key)) : own;
    await this.#projects.limit(path, number, limits);
  }

  /** Whether a workspace made of a snapshot has to be an image. */
  async isImageForNew(limits: QuotaLimits): Promise<boolean> {
    const { kind } = await this.choice();
    return kind === "image" && Number.isFinite(capOf(limits.workspaceBytes));
  }

  /** Mounts a new image at an empty directory, to be filled before it becomes the workspace's. */
  async mountNew(path: string, key: SandboxKey, limits: QuotaLimits): Promise<void> {
    const { problem } = await this.choice();
    try {
      if (problem !== undefined) throw new Error(problem);
      await this.#images.mountHalf(key, limits, path);
    } catch (error) {
      throw this.#unusable(key, error);
    }
  }

  /** Makes the new image the workspace's, in place of an old one. */
  async keepNew(path: string, key: SandboxKey): Promise<void> {
    try {
      await this.#images.unmount(key);
      await this.#images.keepHalf(key, path);
    } catch (error) {
      throw this.#unusable(key, error);
    }
  }

  async dropNew(path: string, key: SandboxKey): Promise<void> {
    await this.#images.dropHalf(key, path);
  }

  /** Unmounts what is mounted at a directory of the worker's own, if anything is. */
  async unmountFrom(path: string): Promise<void> {
    await this.#images.unmountFrom(path);
  }

  /** The project numbers that the workspace may have: its sandbox's own, or, after a restore, the sandbox's spare one. */
  async #numbersOf(key: SandboxKey, present: number): Promise<readonly [number, number?]> {
    const own = await this.#numbers(key);
    return present === 0 || present === own ? [own] : [own, await this.#numbers(spareOf(key))];
  }

  /** Unmounts the workspace, if it is an image. Call after the sandbox's container was removed. */
  async unmount(key: SandboxKey): Promise<void> {
    await this.#images.unmount(key);
  }

  /** Whether the image is mounted. Another worker of the host that removed an older container may have unmounted it. */
  async isMounted(key: SandboxKey): Promise<boolean> {
    return isMountPoint(join(this.#root, key));
  }

  async removeEmpty(key: SandboxKey): Promise<void> {
    try {
      await this.#images.removeEmpty(key);
    } catch (error) {
      throw this.#unusable(key, error);
    }
  }

  /** Only a new workspace with a limit becomes an image. A workspace with files stays as it is. */
  async #isFresh(key: SandboxKey, { workspaceBytes }: QuotaLimits): Promise<boolean> {
    if (!Number.isFinite(capOf(workspaceBytes))) return false;
    const path = join(this.#root, key);
    const found = await lstat(path).catch(() => undefined);
    return found === undefined || (await readdir(path)).length === 0;
  }

  #unusable(key: SandboxKey, error: unknown): Fault {
    const detail = `its quota cannot be set: ${error instanceof Error ? error.message : String(error)}`;
    return new Fault("workspace-unusable", { path: join(this.#root, key), detail }, { cause: error });
  }
}

export interface WorkspaceQuotasParts {
  readonly tool: Pick<HostTool, "volume" | "ask">;
  readonly uids: UidRange;
}

/** No sandbox has such a key. */
function spareOf(key: SandboxKey): string {
  return `${key}~`;
}

function withProblem(kind: QuotaKind, problem: string | undefined): QuotaChoice {
  return problem === undefined ? { kind } : { kind, problem };
}

/** The usage of a whole file system. */
export async function heldBy(path: string): Promise<DiskUsage> {
  const { blocks, bfree, bsize, files, ffree } = await statfs(path);
  return { bytes: (blocks - bfree) * bsize, entries: files - ffree };
}

/** The usage that the file system counts, including deleted files that are held open. */
export async function countedUsage(path: string, isImage: boolean): Promise<WorkspaceUsage> {
  const { blocks, bfree, bsize, files, ffree } = await statfs(path);
  const entries = files - ffree - (isImage ? imageInodes : 0);
  return {
    bytes: (blocks - bfree) * bsize,
    // The workspace's own directory is not an entry.
    entries: Math.max(0, entries - 1),
    unlinkedBytes: 0,
    partial: false,
  };
}
