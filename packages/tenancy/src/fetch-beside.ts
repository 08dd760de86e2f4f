import type { Sessions } from "./sessions.ts";
import type { FetchedJob, JobsPort } from "./tenancy-ports.ts";

/** Pause between two searches for jobs of other sessions, while one session has many jobs parked. */
export const besideMs = 250;

/** For a tenancy with enough jobs parked: takes a job of a session that has none parked, so that this session need not wait. */
export async function fetchBeside(
  jobs: JobsPort,
  sessions: Pick<Sessions<unknown>, "hasCapacity" | "names">,
): Promise<FetchedJob | undefined> {
  return sessions.hasCapacity ? await jobs.nextBeside(sessions.names) : undefined;
}
