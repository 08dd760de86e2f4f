import { lstat } from "node:fs/promises";
import { capOf } from "@berth/protocol";
import type { QuotaLimits } from "./image-quota.ts";
import { mountOf } from "./mounts.ts";
import { runTool } from "./tool.ts";

/** Of the root of every subvolume. */
const subvolumeInode = 256;

/** Quota groups of btrfs: each workspace is a subvolume, and the kernel refuses bytes past its limit. It does not count files. */
export class BtrfsQuota {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Why there can be none here; undefined when there can. */
  async problem(): Promise<string | undefined> {
    const mount = await mountOf(this.#root);
    if (mount?.type !== "btrfs") return `${mount?.type ?? "the disk"} at ${mount?.place ?? "/"} is not btrfs`;
    if (process.getuid?.() !== 0) return "the worker is not root";
    return runTool("btrfs", ["qgroup", "show", mount.place]).then(
      () => undefined,
      (error: Error) => error.message,
    );
  }

  /** In place of a directory, where there is none yet. */
  async create(path: string): Promise<void> {
    const found = await lstat(path).catch(() => undefined);
    if (!found) await runTool("btrfs", ["subvolume", "create", path]);
  }

  /** False for a directory that is no subvolume. */
  async limit(path: string, { workspaceBytes }: QuotaLimits): Promise<boolean> {
    if ((await lstat(path)).ino !== subvolumeInode) return false;
    const bytes = capOf(workspaceBytes);
    await runTool("btrfs", ["qgroup", "limit", Number.isFinite(bytes) ? String(bytes) : "none", path]);
    return true;
  }
}
