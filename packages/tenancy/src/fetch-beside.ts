import type { Sessions } from "./sessions.ts";
import type { FetchedJob, JobsPort } from "./tenancy-ports.ts";

/** Pause between two searches for jobs of other sessions behind a session with many. */
export const besideMs = 250;

/** For a tenancy with enough jobs parked: sessions without a parked job must not wait for those that have some. */
export async function fetchBeside(
  jobs: JobsPort,
  sessions: Pick<Sessions<unknown>, "hasPlace" | "names">,
): Promise<FetchedJob | undefined> {
  return sessions.hasPlace ? await jobs.nextBeside(sessions.names) : undefined;
}
