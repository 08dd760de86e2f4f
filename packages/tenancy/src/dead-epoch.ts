import { isRepeatable, type Job, job as jobSchema } from "@berth/protocol";
import type { EventsPort, FetchedJob, JobsPort } from "./tenancy-ports.ts";

export interface DeadEpoch {
  readonly jobs: JobsPort;
  readonly events: EventsPort;
  /** A job that began, whose end nobody knows, and that must not begin again. */
  readonly onLost: (fetched: FetchedJob, job: Job) => Promise<void>;
  /** After each job. */
  readonly onStep: () => void;
}

/** A dead epoch's jobs, one by one: told already, never begun, safe to repeat, or lost. */
export async function settleDeadEpoch({ jobs, events, onLost, onStep }: DeadEpoch) {
  const counts = { lost: 0, back: 0, done: 0 };
  const back: FetchedJob[] = [];
  for (const fetched of await jobs.active()) {
    const progress = await events.progress(fetched.id);
    if (progress === "finished") {
      await fetched.complete();
      counts.done++;
    } else if (progress === "not-started") {
      back.push(fetched);
    } else {
      // One that cannot be read goes back too: it is refused when its turn comes.
      const parsed = jobSchema.safeParse(await fetched.load().catch(() => undefined));
      if (!parsed.success || isRepeatable(parsed.data.request, parsed.data.idempotent)) back.push(fetched);
      else {
        await onLost(fetched, parsed.data);
        counts.lost++;
      }
    }
    onStep();
  }
  // Each goes to the front of the line: the first in line last.
  for (const fetched of back.reverse()) await fetched.putBack();
  counts.back = back.length;
  return counts;
}
