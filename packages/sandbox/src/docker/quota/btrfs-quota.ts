import { lstat } from "node:fs/promises";
import { capOf } from "@berth/protocol";
import { type HostTool, isSubvolume } from "../trees/host-tool.ts";
import type { QuotaLimits } from "./image-quota.ts";
import { mountOf } from "./mounts.ts";

/** Quota groups of btrfs: each workspace is a subvolume, and the kernel refuses bytes past its limit. It does not count files. */
export class BtrfsQuota {
  readonly #root: string;
  readonly #tool: Pick<HostTool, "volume" | "ask">;

  constructor(root: string, tool: Pick<HostTool, "volume" | "ask">) {
    this.#root = root;
    this.#tool = tool;
  }

  /**
   * Why btrfs quotas cannot be had here; undefined when they can. `enables`: switch them on where they are off. The operator has to choose
   * that, since quotas slow down a file system with many snapshots.
   */
  async problem({ enables }: { readonly enables: boolean }): Promise<string | undefined> {
    const mount = await mountOf(this.#root);
    if (mount?.type !== "btrfs") return `${mount?.type ?? "the disk"} at ${mount?.place ?? "/"} is not btrfs`;
    if (process.getuid?.() !== 0) return "the worker is not root";
    const { on, detail } = await this.#tool.ask("groups", mount.place);
    if (detail !== undefined) return `quotas of btrfs at ${mount.place}: ${detail}`;
    if (on === true) return undefined;
    if (!enables) return `quotas of btrfs are not enabled at ${mount.place}`;
    const enabled = await this.#tool.ask("groups-on", mount.place);
    return enabled.detail && `quotas of btrfs cannot be enabled at ${mount.place}: ${enabled.detail}`;
  }

  /** False: the directory is not a subvolume. */
  async limit(path: string, { workspaceBytes }: QuotaLimits): Promise<boolean> {
    if (!isSubvolume(await lstat(path))) return false;
    const bytes = capOf(workspaceBytes);
    await this.#tool.volume("group-limit", path, Number.isFinite(bytes) ? bytes : 0);
    return true;
  }
}
