import type { Sessions } from "./sessions.ts";
import type { FetchedJob, JobsPort } from "./tenancy-ports.ts";

/** Between two looks for jobs of other sessions behind those of a session with many. */
export const besideMs = 250;

/** For a tenancy with enough jobs parked: a session that has nothing here is not kept waiting by those that have. */
export async function fetchBeside(
  jobs: JobsPort,
  sessions: Pick<Sessions<unknown>, "hasPlace" | "names">,
): Promise<FetchedJob | undefined> {
  return sessions.hasPlace ? await jobs.nextBeside(sessions.names) : undefined;
}
