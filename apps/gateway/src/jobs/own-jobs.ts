import { type Berth, type JobView as ClientJob, shownState } from "@berth/client";
import type { JobResult } from "@berth/protocol";
import { Problem } from "../http/problem.ts";
import { shownId, storedIds } from "../keys/own-ids.ts";
import { mayTouch, type Principal } from "../keys/principal.ts";
import type { JobView } from "../schemas/job.ts";
import { resultFor } from "./redaction.ts";

/** Finds a job by the caller's id for it. A job the caller may not see counts as missing. */
export async function findJob(berth: Berth, id: string, principal: Principal): Promise<ClientJob> {
  const known = await Promise.all(storedIds(principal, id).map((one) => berth.jobs.find(one)));
  const job = known.find((one) => one !== undefined && mayTouch(principal, one.tenant));
  if (!job) {
    throw new Problem(
      "not-found",
      principal.role === "admin"
        ? "no job of that id is known; one that was submitted with a tenant key is <tenant>.<id>, and ids are remembered for a day after the end"
        : "no job of that id is known; ids are remembered for a day after the end",
    );
  }
  return job;
}

/** The job as this caller may see it. */
export function viewFor(principal: Principal, { id, state, result, ...job }: ClientJob): JobView {
  return {
    ...job,
    id: shownId(principal, id),
    state: shownState(state),
    ...(result === undefined ? {} : { result: resultFor(principal, result) }),
  };
}

/** The job after waiting for its end; if the wait timed out, its current state. */
export async function afterWait(
  berth: Berth,
  job: ClientJob,
  result: JobResult | undefined,
): Promise<ClientJob> {
  if (result) return { ...job, state: "finished", result };
  return (await berth.jobs.find(job.id)) ?? job;
}
