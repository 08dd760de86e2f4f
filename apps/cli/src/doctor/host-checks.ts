import { readFile, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { byteSize } from "@berth/protocol";
import type { Config } from "../config.ts";
import { type Finding, tellerOf } from "./finding.ts";

const { ok, warn, bad } = tellerOf("host");
const leastFreeBytes = 1024 ** 3;
const leastNode = 24;

/** This machine: its Node, the disk of the workspaces, what the kernel allows. */
export async function* hostChecks(config: Config): AsyncGenerator<Finding> {
  const node = Number(process.versions.node.split(".")[0]);
  yield node >= leastNode
    ? ok(`Node ${process.versions.node}`)
    : bad(`Node ${process.versions.node}`, `Berth is made for Node ${leastNode} and newer`);
  yield* workspaces(config.BERTH_WORKSPACES);
  yield* userNamespaces();
  if (process.getuid?.() !== 0)
    yield warn(
      "not root: all sandboxes share this user's uid",
      "run workers as root for a uid of each tenant's own, or use a rootless engine for each",
    );
}

async function* workspaces(root: string): AsyncGenerator<Finding> {
  const there = await nearestThere(root);
  const { bavail, bsize } = await statfs(there);
  const freeBytes = bavail * bsize;
  yield freeBytes >= leastFreeBytes
    ? ok(`${root} has ${byteSize(freeBytes)} free`)
    : warn(`${root} has ${byteSize(freeBytes)} free`, "make room, or set BERTH_WORKSPACES to a larger disk");
  const mount = await mountOf(there);
  const quotas = /\b(prjquota|pquota)\b/.test(mount?.options ?? "");
  yield quotas
    ? ok(`${mount?.type} at ${mount?.place} has project quotas: set one for each workspace for a hard limit`)
    : warn(
        `${mount?.type ?? "the disk"} at ${mount?.place ?? there} has no project quotas: the workspace quota is watched, not enforced`,
        "mount xfs with prjquota, or ext4 with the project feature and prjquota, where half a second of writing matters",
      );
}

/** The kernel's count; tenants cannot make any in the sandbox, which its probes show. */
async function* userNamespaces(): AsyncGenerator<Finding> {
  const most = Number(await readFile("/proc/sys/user/max_user_namespaces", "utf8").catch(() => "0"));
  const byAnybody = (
    await readFile("/proc/sys/kernel/unprivileged_userns_clone", "utf8").catch(() => "1")
  ).trim();
  yield most > 0 && byAnybody !== "0"
    ? ok(
        "user namespaces can be made here, as a rootless engine needs; sandboxes are kept from it by seccomp",
      )
    : ok("user namespaces cannot be made by ordinary users; a rootless engine would not start here");
}

async function nearestThere(path: string): Promise<string> {
  for (let at = resolve(path); ; at = dirname(at)) {
    if (
      await statfs(at).then(
        () => true,
        () => false,
      )
    )
      return at;
    if (at === dirname(at)) return at;
  }
}

async function mountOf(path: string): Promise<{ place: string; type: string; options: string } | undefined> {
  const text = await readFile("/proc/self/mounts", "utf8").catch(() => "");
  const mounts = text.split("\n").flatMap((line) => {
    const [, place, type, options] = line.split(" ");
    return place === undefined || type === undefined || options === undefined
      ? []
      : [{ place, type, options }];
  });
  const above = mounts.filter(({ place }) => place === "/" || path === place || path.startsWith(`${place}/`));
  return above.toSorted((a, b) => a.place.length - b.place.length).at(-1);
}
