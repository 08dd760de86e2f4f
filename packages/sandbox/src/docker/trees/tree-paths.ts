import { randomBytes } from "node:crypto";
import { chmod, chown, lstat, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TreeOnDisk } from "../../trees.ts";
import { treeFolder } from "../container-shape.ts";
import { ignoreExisting } from "../host-files.ts";
import { sharedUidPath } from "../workspace.ts";

const treeMode = 0o700;
/** Longer than any work on a tree takes. */
const leftAfterMs = 3_600_000;

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Where snapshots lie, beside the workspaces. A tree that is being made or removed has a temporary name. A rename makes it a snapshot, or
 * the other way round.
 */
export class TreePaths {
  readonly root: string;
  readonly #folder: string;

  constructor(root: string) {
    this.root = root;
    this.#folder = join(root, treeFolder);
  }

  snapshot(id: string): string {
    return join(this.#folder, id);
  }

  async prepare(): Promise<void> {
    await mkdir(this.#folder, { mode: treeMode }).catch(ignoreExisting);
  }

  /** A temporary name. */
  aside(): string {
    return join(this.#folder, `.aside-${randomBytes(8).toString("hex")}`);
  }

  /** An empty directory with that owner, under a temporary name. */
  async makeAside(owner: Owner, make?: (path: string) => Promise<void>): Promise<string> {
    await this.prepare();
    const path = this.aside();
    if (make) await make(path);
    else await mkdir(path, { mode: treeMode });
    await chmod(path, treeMode);
    if (process.getuid?.() === 0) await chown(path, owner.uid, owner.gid);
    return path;
  }

  async snapshots(): Promise<TreeOnDisk[]> {
    const names = (await this.#names()).filter((name) => !name.startsWith("."));
    const found = names.map(async (id) => ({ id, madeAtMs: await this.#namedAtMs(id) }));
    return (await Promise.all(found)).filter(({ madeAtMs }) => Number.isFinite(madeAtMs));
  }

  /** Trees under temporary names that workers left when they died. */
  async leftovers(): Promise<string[]> {
    const names = (await this.#names()).filter((name) => name.startsWith(".aside-"));
    const found = await Promise.all(names.map(async (name) => ({ name, at: await this.#namedAtMs(name) })));
    return found
      .filter(({ at }) => Date.now() - at > leftAfterMs)
      .map(({ name }) => join(this.#folder, name));
  }

  /** Records that several sandboxes may have that uid. A limit on its processes would be one on all of them together. */
  async noteShared({ uid }: Owner): Promise<void> {
    const path = sharedUidPath(this.root, uid);
    await mkdir(dirname(path), { mode: treeMode }).catch(ignoreExisting);
    await writeFile(path, "", { flag: "a", mode: 0o600 });
  }

  async #names(): Promise<string[]> {
    return readdir(this.#folder).catch(() => []);
  }

  /** When the tree was last renamed, by its ctime. A tenant's changes within a tree matter little here. */
  async #namedAtMs(name: string): Promise<number> {
    return lstat(join(this.#folder, name)).then(
      ({ ctimeMs }) => ctimeMs,
      () => Number.NaN,
    );
  }
}
