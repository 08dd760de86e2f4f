import { access, mkdir, open, readdir, rename, rm, rmdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { capOf, type SandboxKey, type SandboxLimits } from "@berth/protocol";
import { isMountPoint } from "./mounts.ts";
import { runTool } from "./tool.ts";

export type QuotaLimits = Pick<SandboxLimits, "workspaceBytes" | "workspaceEntries">;

const mebibyte = 1024 * 1024;
const inodeBytes = 256;
/** Inodes that ext4 uses itself, and that of lost+found, which is removed. */
const ownInodes = 11;
/** More inodes than this take too much room. The quota guard still counts entries. */
const inodesMost = 4_000_000;
const journalMebibytes = 4;
/** Inode tables are not written before they are used, and blocks of removed files go back to the host's disk. */
const mountOptions = "loop,nosuid,nodev,noinit_itable,discard";
/** A statfs of the quota guard may still keep the mount busy. */
const unmountAttempts = 5;
const unmountPauseMs = 100;
const freeMost = 10_000;
/** e2fsck's exit code after a repair, such as of the missing lost+found. */
const repaired = 1;
/** Share of an image that its bitmaps and group descriptors take. */
const structureShare = 0.02;

/**
 * A workspace as a file system of its own, in a sparse image beside it. Its size is the limit, and its usage is known without a walk. It
 * costs a loop device for each sandbox, and its files pass through two file systems.
 *
 * An image stays when the setting changes. The directory beneath the mount belongs to root and stays empty: a container whose engine
 * does not see the mount cannot write there.
 */
export class ImageQuota {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  async has(key: SandboxKey): Promise<boolean> {
    return access(this.#image(key)).then(
      () => true,
      () => false,
    );
  }

  /** Makes the image if there is none, larger if its limit was raised, and mounts it. Idempotent. */
  async mount(key: SandboxKey, limits: QuotaLimits): Promise<void> {
    const place = join(this.#root, key);
    if (!(await this.has(key))) await this.#make(key, limits);
    await mkdir(place, { mode: 0o700 }).catch(ignore("EEXIST"));
    if (!(await isMountPoint(place))) {
      await this.#grow(key, limits);
      await runTool("mount", ["-o", mountOptions, this.#image(key), place]);
    }
    await rmdir(join(place, "lost+found")).catch(ignore("ENOENT", "ENOTEMPTY", "ENOTDIR"));
  }

  /** Unmounts the image. Nothing may run in the sandbox. An image that is still in use stays mounted, which the next start allows for. */
  async unmount(key: SandboxKey): Promise<void> {
    await this.unmountFrom(join(this.#root, key));
  }

  async unmountFrom(place: string): Promise<void> {
    for (let attempt = 0; attempt < unmountAttempts && (await isMountPoint(place)); attempt++) {
      if (attempt > 0) await sleep(unmountPauseMs);
      await runTool("umount", [place]).catch(() => {});
    }
  }

  /** Removes the image. Throws if the workspace is not empty. */
  async removeEmpty(key: SandboxKey): Promise<void> {
    if (!(await this.has(key))) return;
    const place = join(this.#root, key);
    await this.mount(key, { workspaceBytes: 0, workspaceEntries: 0 });
    if ((await readdir(place)).length > 0) throw new Error("it is not empty");
    await runTool("umount", [place]);
    await rm(this.#image(key));
  }

  /**
   * Mounts a new image at `place`, an empty directory, to be filled before it becomes the workspace's. It replaces a half-made image of a
   * holder that died.
   */
  async mountHalf(key: SandboxKey, limits: QuotaLimits, place: string): Promise<void> {
    await this.#makeHalf(key, limits);
    await runTool("mount", ["-o", mountOptions, this.#half(key), place]);
    await rmdir(join(place, "lost+found"));
  }

  /** Makes the new image the workspace's, in place of an old one, which must not be mounted. */
  async keepHalf(key: SandboxKey, place: string): Promise<void> {
    await this.unmountFrom(place);
    if (await isMountPoint(place)) throw new Error("the new image is still in use");
    if (await isMountPoint(join(this.#root, key))) throw new Error("the image is still in use");
    await mkdir(join(this.#root, key), { mode: 0o700 }).catch(ignore("EEXIST"));
    await rename(this.#half(key), this.#image(key));
  }

  async dropHalf(key: SandboxKey, place: string): Promise<void> {
    await this.unmountFrom(place);
    await rm(this.#half(key), { force: true });
  }

  async #make(key: SandboxKey, limits: QuotaLimits): Promise<void> {
    await this.#makeHalf(key, limits);
    await rename(this.#half(key), this.#image(key));
  }

  async #makeHalf(key: SandboxKey, limits: QuotaLimits): Promise<void> {
    await mkdir(join(this.#root, ".images"), { mode: 0o700 }).catch(ignore("EEXIST"));
    const half = this.#half(key);
    await rm(half, { force: true });
    const file = await open(half, "wx", 0o600);
    try {
      await file.truncate(await this.#bytesFor(key, limits));
    } finally {
      await file.close();
    }
    const layout = [
      ...["-m", "0", "-N", String(inodesOf(limits)), "-I", String(inodeBytes)],
      ...["-J", `size=${journalMebibytes}`, "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"],
    ];
    await runTool("mkfs.ext4", ["-q", "-F", ...layout, half]);
  }

  /** Without a limit, the size of the present image. */
  async #bytesFor(key: SandboxKey, limits: QuotaLimits): Promise<number> {
    const isLimited = Number.isFinite(capOf(limits.workspaceBytes));
    return isLimited ? imageBytes(limits) : (await stat(this.#image(key))).size;
  }

  async #grow(key: SandboxKey, limits: QuotaLimits): Promise<void> {
    if (capOf(limits.workspaceBytes) === Number.POSITIVE_INFINITY) return;
    const image = this.#image(key);
    if (imageBytes(limits) <= (await stat(image)).size) return;
    await waitUntilFree(image);
    // Before it is mounted: later only a process with CAP_SYS_RESOURCE may make it larger.
    await runTool("e2fsck", ["-f", "-p", image], repaired);
    await truncate(image, imageBytes(limits));
    await runTool("resize2fs", [image]);
  }

  #half(key: SandboxKey): string {
    return `${this.#image(key)}.new`;
  }

  #image(key: SandboxKey): string {
    return join(this.#root, ".images", `${key}.ext4`);
  }
}

/** A container that is being started has a copy of all of the host's mounts for a moment. That keeps an unmounted image in use. */
async function waitUntilFree(image: string): Promise<void> {
  const givesUpAt = performance.now() + freeMost;
  while ((await runTool("losetup", ["-j", image])).trim() !== "") {
    if (performance.now() > givesUpAt)
      throw new Error("its image is still in use, and cannot be made larger");
    await sleep(unmountPauseMs);
  }
}

function inodesOf({ workspaceEntries }: QuotaLimits): number {
  return Math.min(capOf(workspaceEntries), inodesMost) + 2 * ownInodes;
}

/** The limit and ext4's own structures, rounded up. A little more than the limit, so that the quota guard notices first and gives the reason. */
function imageBytes(limits: QuotaLimits): number {
  const { workspaceBytes } = limits;
  const own = inodesOf(limits) * inodeBytes + (journalMebibytes + 1) * mebibyte;
  const bytes = (capOf(workspaceBytes) + own) * (1 + structureShare);
  return Math.ceil(bytes / mebibyte) * mebibyte;
}

function ignore(...codes: string[]) {
  return (error: unknown): void => {
    if (!codes.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  };
}
