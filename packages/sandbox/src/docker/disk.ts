import { access, readlink, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/**
 * The block device that has a directory's files, as the engine names it. For a partition the whole disk: the kernel limits rates only of
 * whole disks. Undefined where there is none, as on a network file system or in memory.
 */
export async function diskOf(directory: string): Promise<string | undefined> {
  const { dev } = await stat(directory);
  const entry = join("/sys/dev/block", `${majorOf(dev)}:${minorOf(dev)}`);
  try {
    const device = join(dirname(entry), await readlink(entry));
    const isPartition = await access(join(entry, "partition")).then(
      () => true,
      () => false,
    );
    return `/dev/${basename(isPartition ? dirname(device) : device)}`;
  } catch {
    return undefined;
  }
}

/** The major number, as glibc packs it into a device's number. */
function majorOf(dev: number): number {
  return Number((BigInt(dev) >> 8n) & 0xfffn);
}

function minorOf(dev: number): number {
  return Number((BigInt(dev) & 0xffn) | ((BigInt(dev) >> 12n) & 0xfff00n));
}
