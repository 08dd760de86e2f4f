import { readFile, statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { byteSize, fleetId, workerId } from "@berth/protocol";
import { DockerDriver, type QuotaChoice } from "@berth/sandbox";
import type { Config } from "../config.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warn, bad } = findingsOf("host");
const leastFreeBytes = 1024 ** 3;
const leastNode = 24;

/** Checks this machine: Node, the disk of the workspaces, kernel settings. */
export async function* hostChecks(config: Config): AsyncGenerator<Finding> {
  const node = Number(process.versions.node.split(".")[0]);
  yield node >= leastNode
    ? ok(`Node ${process.versions.node}`)
    : bad(`Node ${process.versions.node}`, `Berth is made for Node ${leastNode} and newer`);
  yield* workspaces(config.workspacesRoot);
  yield* quota(await quotaHere(config));
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
}

function* quota({ kind, problem }: QuotaChoice): Generator<Finding> {
  yield kind === "walk"
    ? warn(
        `the workspace quota is watched, not enforced${problem === undefined ? "" : `: ${problem}`}`,
        "docs/deploy.md, Quotas, where half a second of writing matters: xfs or ext4 with project quotas, btrfs with quotas enabled or BERTH_QUOTA_BACKEND=btrfs, or BERTH_QUOTA_BACKEND=image. `berth doctor fleet` has what each worker can do: in Compose that takes the overlay of the warm pool",
      )
    : problem === undefined
      ? ok(`the file system enforces the quota of new workspaces (${kind})`)
      : bad(
          `no sandbox starts with BERTH_QUOTA_BACKEND=${kind}: ${problem}`,
          "put that right, or choose auto",
        );
}

/** The quota backend that a worker with these settings would choose. */
function quotaHere(config: Config): Promise<QuotaChoice> {
  const driver = new DockerDriver({
    fleet: fleetId.parse("doctor"),
    worker: workerId.parse("doctor"),
    workspacesRoot: config.workspacesRoot,
    quota: config.quotaBackend,
  });
  return driver.quota();
}

/** Whether this kernel allows user namespaces. Sandboxes cannot make any; the sandbox probes check that. */
async function* userNamespaces(): AsyncGenerator<Finding> {
  const most = Number(await readFile("/proc/sys/user/max_user_namespaces", "utf8").catch(() => "0"));
  const forOrdinaryUsers = (
    await readFile("/proc/sys/kernel/unprivileged_userns_clone", "utf8").catch(() => "1")
  ).trim();
  yield most > 0 && forOrdinaryUsers !== "0"
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
