import { readdir } from "node:fs/promises";
import { capOf } from "@berth/protocol";
import type { HostTool } from "../trees/host-tool.ts";
import type { QuotaLimits } from "./image-quota.ts";
import { mountOf } from "./mounts.ts";

/**
 * Project quotas of ext4 and xfs: a directory bears a number, what is made in it inherits that, and the kernel counts and
 * refuses. init's seccomp filter refuses tenants the calls that change the number.
 */
export class ProjectQuota {
  readonly #root: string;
  readonly #tool: Pick<HostTool, "volume" | "ask">;

  constructor(root: string, tool: Pick<HostTool, "volume" | "ask">) {
    this.#root = root;
    this.#tool = tool;
  }

  /** Why there can be none here; undefined when there can. */
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

  /** 0: none. */
  async numberOf(path: string): Promise<number> {
    return (await this.#tool.volume("project", path)).number ?? 0;
  }

  /**
   * Sets the limits of an empty directory, or of one that bears the number already. False for any other: its files would have to be
   * changed one by one, and only the tenant itself touches those.
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

/** As the kernel takes them: 0 is no limit to both. */
export function quotaNumbers({ workspaceBytes, workspaceEntries }: QuotaLimits) {
  return {
    kibibytes: finite(Math.ceil(capOf(workspaceBytes) / 1024)),
    entries: finite(capOf(workspaceEntries)),
  };
}

function finite(limit: number): number {
  return Number.isFinite(limit) ? limit : 0;
}
