import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

export interface Mount {
  readonly place: string;
  readonly type: string;
  /** A device, for most types. */
  readonly source: string;
  /** Options of the file system, not of this mount. */
  readonly options: readonly string[];
}

/** The mounts that this process sees, in the order in which they were made. */
export async function mounts(): Promise<Mount[]> {
  const text = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => {
    const [before = "", after] = line.split(" - ");
    const place = before.split(" ")[4];
    const [type, source = "", options] = after?.split(" ") ?? [];
    if (place === undefined || type === undefined) return [];
    return [{ place: unescaped(place), type, source: unescaped(source), options: options?.split(",") ?? [] }];
  });
}

/** The mount that has a path's files, or will have them once the path exists. */
export async function mountOf(given: string): Promise<Mount | undefined> {
  const path = await nearestReal(given);
  const above = (await mounts()).filter(
    ({ place }) => place === "/" || path === place || path.startsWith(`${place}/`),
  );
  const longest = Math.max(0, ...above.map(({ place }) => place.length));
  return above.findLast(({ place }) => place.length === longest);
}

export async function isMountPoint(path: string): Promise<boolean> {
  // The kernel lists mounts by their real paths, and the workspaces' directory may be a symbolic link.
  const real = join(await nearestReal(dirname(path)), basename(path));
  return (await mounts()).some(({ place }) => place === real);
}

async function nearestReal(path: string): Promise<string> {
  return realpath(path).catch(() => (dirname(path) === path ? path : nearestReal(dirname(path))));
}

function unescaped(place: string): string {
  return place.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
