import { readdir } from "node:fs/promises";
import { capOf } from "@berth/protocol";
import type { QuotaLimits } from "./image-quota.ts";
import { mountOf } from "./mounts.ts";
import { runTool } from "./tool.ts";

/**
 * Project quotas of ext4 and xfs: a directory bears a number, what is made in it inherits that, and the kernel counts and
 * refuses. init's seccomp filter refuses tenants the calls that change the number.
 */
export class ProjectQuota {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** Why there can be none here; undefined when there can. */
  async problem(): Promise<string | undefined> {
    const mount = await mountOf(this.#root);
    if (!mount) return `no file system is known at ${this.#root}`;
    const { type, place, options } = mount;
    if (type !== "ext4" && type !== "xfs") return `${type} at ${place} has no project quotas`;
    if (!options.some((option) => option === "prjquota" || option === "pquota"))
      return `${type} at ${place} is not mounted with prjquota`;
    if (process.getuid?.() !== 0) return "the worker is not root";
    const tool = type === "xfs" ? ["xfs_quota", "-V"] : ["setquota", "-V"];
    return runTool(tool[0] ?? "", tool.slice(1)).then(
      () => undefined,
      (error: Error) => error.message,
    );
  }

  /**
   * Sets the limits of an empty directory, or of one that bears the number already. False for any other: its files would have to be
   * changed one by one, and only the tenant itself touches those.
   */
  async limit(path: string, project: number, limits: QuotaLimits): Promise<boolean> {
    if ((await projectOf(path)) !== project) {
      if ((await readdir(path)).length > 0) return false;
      await runTool("chattr", ["-p", String(project), path]);
      await runTool("chattr", ["+P", path]);
    }
    const mount = await mountOf(path);
    await runTool(...limitCall(mount?.type ?? "", mount?.place ?? "/", project, limits));
    return true;
  }
}

async function projectOf(path: string): Promise<number> {
  const listed = await runTool("lsattr", ["-d", "-p", path]);
  return Number(/^\s*(\d+)/.exec(listed)?.[1] ?? 0);
}

/** 0 is no limit to both. */
export function limitCall(
  type: string,
  place: string,
  project: number,
  { workspaceBytes, workspaceEntries }: QuotaLimits,
): [program: string, args: string[]] {
  const kibibytes = String(finite(Math.ceil(capOf(workspaceBytes) / 1024)));
  const entries = String(finite(capOf(workspaceEntries)));
  if (type !== "xfs") return ["setquota", ["-P", String(project), "0", kibibytes, "0", entries, place]];
  const limit = `limit -p bhard=${kibibytes}k ihard=${entries} ${project}`;
  return ["xfs_quota", ["-x", "-D", "/dev/null", "-P", "/dev/null", "-c", limit, place]];
}

function finite(limit: number): number {
  return Number.isFinite(limit) ? limit : 0;
}
