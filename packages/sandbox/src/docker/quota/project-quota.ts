import { readdir } from "node:fs/promises";
import { capOf } from "@berth/protocol";
import type { HostTool } from "../trees/host-tool.ts";
import type { QuotaLimits } from "./image-quota.ts";
import { mountOf } from "./mounts.ts";

/**
 * Project quotas of ext4 and xfs. A directory has a project number, which files made in it inherit. The kernel counts the blocks and inodes
 * of each number, and refuses more than its limit. init's seccomp filter keeps tenants from changing a number.
 */
export class ProjectQuota {
  readonly #root: string;
  readonly #tool: Pick<HostTool, "volume" | "ask">;

  constructor(root: string, tool: Pick<HostTool, "volume" | "ask">) {
    this.#root = root;
    this.#tool = tool;
  }

  /** Why project quotas cannot be had here; undefined when they can. */
  async problem(): Promise<string | undefined> {
    const mount = await mountOf(this.#root);
    if (!mount) return `no file system is known at ${this.#root}`;
    const { type, place, options, source } = mount;
    if (type !== "ext4" && type !== "xfs") return `${type} at ${place} has no project quotas`;
    if (!options.some((option) => option === "prjquota" || option === "pquota"))
      return `${type} at ${place} is not mounted with prjquota`;
    if (process.getuid?.() !== 0) return "the worker is not root";
    const { detail } = await this.#tool.ask("project-try", place, source);
    return detail && `project quotas at ${place}: ${detail}`;
  }

  /** The directory's project number; 0: none. */
  async numberOf(path: string): Promise<number> {
    return (await this.#tool.volume("project", path)).number ?? 0;
  }

  /**
   * Sets the limits of a directory that is empty or has the number already. False for any other: its files would have to be changed one by
   * one, and the worker touches no file of a tenant.
   */
  async limit(path: string, project: number, limits: QuotaLimits): Promise<boolean> {
    if ((await this.numberOf(path)) !== project) {
      if ((await readdir(path)).length > 0) return false;
      await this.#tool.volume("project-set", path, project);
    }
    const mount = await mountOf(path);
    const { kibibytes, entries } = quotaNumbers(limits);
    await this.#tool.volume("project-limit", path, mount?.source ?? "", project, kibibytes, entries);
    return true;
  }
}

/** In the kernel's units. For the kernel, as for a profile, 0 is no limit. */
export function quotaNumbers({ workspaceBytes, workspaceEntries }: QuotaLimits) {
  return {
    kibibytes: finite(Math.ceil(capOf(workspaceBytes) / 1024)),
    entries: finite(capOf(workspaceEntries)),
  };
}

function finite(limit: number): number {
  return Number.isFinite(limit) ? limit : 0;
}
