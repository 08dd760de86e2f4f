import { randomBytes } from "node:crypto";
import { type FileHandle, lstat, mkdir, open, readlink, rename, rm, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { pathProblem } from "@berth/protocol";
import { Complaint } from "../complaint.ts";

/**
 * A local directory that receives a tenant's files. The tenant chose the names and links, so this class writes only beneath
 * the directory: it refuses names that lead out and follows no link on the way, whichever process made it.
 */
export class LocalTarget {
  readonly root: string;
  readonly #sound = new Set<string>();

  constructor(root: string) {
    this.root = root;
  }

  async directory(path: string, mode = 0o755): Promise<void> {
    let at = "";
    await mkdir(this.root, { recursive: true });
    for (const name of checked(path)
      .split("/")
      .filter((one) => one !== "" && one !== ".")) {
      at = posix.join(at, name);
      await this.#own(at, at === path ? mode : 0o755);
    }
  }

  /** Writes atomically: an existing file keeps its old content until the new content is complete. */
  async file(
    path: string,
    mode: number,
    content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<void> {
    const parent = posix.dirname(checked(path));
    await mkdir(this.root, { recursive: true });
    if (parent !== ".") await this.directory(parent);
    const part = join(this.root, parent, `.berth-part-${randomBytes(9).toString("base64url")}`);
    let handle: FileHandle | undefined;
    try {
      handle = await open(part, "wx", mode & 0o777);
      for await (const bytes of content) await handle.writeFile(bytes);
      await handle.close();
      await rename(part, join(this.root, path));
    } catch (error) {
      await handle?.close().catch(() => {});
      await rm(part, { force: true });
      throw inWords(path, error);
    }
  }

  /** Make links last: a later write could pass through one. */
  async link(path: string, target: string): Promise<void> {
    const parent = posix.dirname(checked(path));
    if (leadsOut(path, target))
      throw new Complaint(`${path}: a link that leads out of the target directory, to ${target}`);
    if (parent !== ".") await this.directory(parent);
    const place = join(this.root, path);
    try {
      if ((await readlink(place).catch(() => undefined)) === target) return;
      const there = await lstat(place).catch(() => undefined);
      if (there && !there.isDirectory()) await rm(place);
      await symlink(target, place);
    } catch (error) {
      throw inWords(path, error);
    }
  }

  async #own(path: string, mode: number): Promise<void> {
    if (this.#sound.has(path)) return;
    const place = join(this.root, path);
    try {
      // The owner needs write permission to fill it.
      await mkdir(place, { mode: (mode & 0o777) | 0o700 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw inWords(path, error);
      if (!(await lstat(place)).isDirectory())
        throw new Complaint(`${path}: exists and is not a directory; links are not followed`);
    }
    this.#sound.add(path);
  }
}

/** Whether a link at `path` would lead out of the copied tree. */
export function leadsOut(path: string, target: string): boolean {
  if (target === "" || target.startsWith("/")) return true;
  const leads = posix.normalize(posix.join(posix.dirname(path), target));
  return leads === ".." || leads.startsWith("../");
}

function checked(path: string): string {
  const problem = path.startsWith("/") ? "it is absolute" : pathProblem(path);
  if (problem !== undefined) throw new Complaint(`${JSON.stringify(path)}: ${problem}`);
  return path;
}

const words: Readonly<Record<string, string>> = {
  EACCES: "not allowed",
  EEXIST: "something else is there already",
  EISDIR: "it is a directory",
  ENOTDIR: "something on its way is not a directory",
  ENOSPC: "the disk is full",
  EROFS: "the disk is read-only",
  ENAMETOOLONG: "the name is too long",
};

function inWords(path: string, error: unknown): unknown {
  const { code = "" } = error as NodeJS.ErrnoException;
  return words[code] === undefined ? error : new Complaint(`${path}: ${words[code]}`, { cause: error });
}
