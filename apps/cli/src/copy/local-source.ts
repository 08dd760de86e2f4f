import type { Dirent } from "node:fs";
import { lstat, readdir, readlink, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { pathProblem } from "@berth/protocol";
import { Complaint } from "../complaint.ts";

export interface LocalEntry {
  /** The path on this machine. */
  readonly place: string;
  /** The path in the sandbox, relative to the workspace. */
  readonly path: string;
  readonly type: "file" | "directory" | "symlink";
  readonly size: number;
  readonly mode: number;
  readonly modifiedMs: number;
  readonly target?: string;
}

export interface LeftOut {
  readonly path: string;
  readonly reason: string;
}

export interface LocalListing {
  readonly entries: readonly LocalEntry[];
  readonly leftOut: readonly LeftOut[];
}

/** `dir/.` and `.` mean the content of the directory, not the directory itself. */
export function meansContents(source: string): boolean {
  return source === "." || source.endsWith("/.");
}

export function nameOf(source: string): string {
  return basename(resolve(source));
}

/** Lists a file, or a directory with everything in it, under the names it gets in the workspace. Directories come before their content. */
export async function listLocal(place: string, path: string): Promise<LocalListing> {
  const entries: LocalEntry[] = [];
  const leftOut: LeftOut[] = [];
  // Follow a link that the user named; copy links found beneath it as links.
  const top = await stat(place).catch(() => undefined);
  if (!top) throw new Complaint(`${place}: there is no such file or directory here`);
  await add(place, path, top);
  return { entries, leftOut };

  async function add(at: string, to: string, known: Awaited<ReturnType<typeof lstat>>): Promise<void> {
    const problem = pathProblem(to);
    const type = typeOf(known);
    if (problem !== undefined) leftOut.push({ path: at, reason: problem });
    else if (type === "other")
      leftOut.push({ path: at, reason: "it is neither a file, a directory nor a link" });
    else {
      const { size, mode, mtimeMs } = known;
      const target = type === "symlink" ? { target: await readlink(at) } : {};
      if (to !== "")
        entries.push({
          place: at,
          path: to,
          type,
          size: type === "file" ? Number(size) : 0,
          mode: Number(mode) & 0o777,
          modifiedMs: Number(mtimeMs),
          ...target,
        });
      if (type === "directory") await addAll(at, to);
    }
  }

  async function addAll(at: string, to: string): Promise<void> {
    const found = await readdir(at, { withFileTypes: true }).catch((error: Error) => {
      leftOut.push({ path: at, reason: error.message });
      return [] as Dirent[];
    });
    for (const { name } of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const child = join(at, name);
      const known = await lstat(child).catch(() => undefined);
      if (known) await add(child, to === "" ? name : `${to}/${name}`, known);
      else leftOut.push({ path: child, reason: "its name is not UTF-8, or it vanished" });
    }
  }
}

function typeOf(known: Awaited<ReturnType<typeof lstat>>): LocalEntry["type"] | "other" {
  if (known.isFile()) return "file";
  if (known.isDirectory()) return "directory";
  return known.isSymbolicLink() ? "symlink" : "other";
}
