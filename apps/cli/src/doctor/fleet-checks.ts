import { readFile } from "node:fs/promises";
import { complaintOf } from "../complaint.ts";
import type { Door } from "../door.ts";
import { counted, spanText } from "../terminal/quantities.ts";
import { type Finding, findingsOf } from "./finding.ts";

const { ok, warn, bad } = findingsOf("fleet");
const longWaitMs = 60_000;

/** Checks that workers are alive and that jobs reach them. */
export async function* fleetChecks(openDoor: () => Promise<Door>): AsyncGenerator<Finding> {
  try {
    const door = await openDoor();
    const workers = await door.workers();
    if (workers.length === 0) {
      yield warn(
        "no worker is alive",
        "start one: REDIS_URL=… node apps/worker/dist/main.js, or `berth dev` for a whole fleet",
      );
      return;
    }
    const { slots, freeSlots, oldestWaitMs, unfinishedJobs } = await door.scale();
    yield ok(
      `${counted(workers.length, "worker")}, ${freeSlots} of ${slots} slots free, ${counted(unfinishedJobs, "job")} unfinished`,
    );
    for (const { id, health } of workers)
      if (health !== "ok")
        yield bad(
          `${id} cannot start sandboxes: ${health}`,
          "look at the engine and the workspaces' disk on that host; the worker goes on by itself",
        );
    for (const { id, warmWhy } of workers)
      if (warmWhy !== "")
        yield warn(
          `${id} starts no containers ahead of time: ${warmWhy}`,
          "docs/operations.md, Warm pool; BERTH_WARM_COUNT=0 where that is meant",
        );
    for (const [why, ids] of Map.groupBy(workers, ({ quotaWhy }) => quotaWhy))
      if (why !== "")
        yield warn(
          `the file system enforces no quota of new workspaces on ${ids.map(({ id }) => id).join(", ")}: ${why}`,
          "docs/deploy.md, Quotas; BERTH_QUOTA_BACKEND=walk where that is meant",
        );
    for (const open of new Set(workers.flatMap(({ openNetworks }) => openNetworks)))
      yield warn(
        `commands under the profile ${open} reach the host's services, its networks and a cloud's metadata address; no rule filters that`,
        "use network none with egress rules, or a firewall of the host's: docs/egress.md, Networks other than none",
      );
    for (const { id, disk } of workers)
      if (disk !== "ok")
        yield bad(
          `${id}: ${disk}`,
          "make room on that host; `berth ps --sandboxes` shows whose files are there",
        );
    if (oldestWaitMs > longWaitMs)
      yield warn(
        `a sandbox with work has waited ${spanText(oldestWaitMs)} for a worker`,
        freeSlots > 0
          ? "`berth ps`, then `berth why JOB`: its pool or its host may have no worker"
          : "add workers, or slots (BERTH_MAX_SANDBOXES)",
      );
    const own = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")).version;
    const others = [...new Set(workers.map(({ version }) => version))].filter((version) => version !== own);
    if (others.length > 0)
      yield warn(
        `workers of version ${others.join(", ")}; this command is ${own}`,
        "update them one by one with `berth drain WORKER`",
      );
  } catch (error) {
    const complaint = complaintOf(error);
    if (!complaint) throw error;
    yield complaint.code === "forbidden"
      ? warn(
          "BERTH_KEY is a tenant's, to whom the fleet is not shown",
          "set BERTH_KEY to an admin key to see it",
        )
      : bad(complaint.message, complaint.advice[0] ?? "see above");
  }
}
