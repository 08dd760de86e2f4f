import { isRepeatable, type Job, type JobResult } from "@berth/protocol";
import type { EventsPort, FetchedJob } from "./tenancy-ports.ts";

export interface DeadEpoch {
  /** The first in line first. */
  readonly left: readonly FetchedJob[];
  readonly events: EventsPort;
  /** The job itself; undefined when it cannot be read, and has ended so. */
  readonly read: (fetched: FetchedJob) => Promise<Job | undefined>;
  /** A job whose end was told: what follows the telling may not have been done. */
  readonly onTold: (fetched: FetchedJob, result: JobResult) => Promise<void>;
  /** One that is to be begun, in its turn. */
  readonly onAgain: (fetched: FetchedJob) => Promise<void>;
  /** A job that began, whose end nobody knows, and that must not begin again. */
  readonly onLost: (fetched: FetchedJob, job: Job) => Promise<void>;
  /** After each job. */
  readonly onStep: () => void;
}

/** A dead epoch's jobs, one by one: told already, never begun, safe to repeat, or lost. */
export async function settleDeadEpoch({ left, events, read, onTold, onAgain, onLost, onStep }: DeadEpoch) {
  const counts = { lost: 0, again: 0, done: 0 };
  const runAgain = async (fetched: FetchedJob) => {
    await onAgain(fetched);
    counts.again++;
  };
  for (const fetched of left) {
    const progress = await events.progress(fetched.id, fetched.attempt);
    if (progress.state === "finished") {
      await onTold(fetched, progress.result);
      counts.done++;
    } else if (progress.state === "not-started") {
      await runAgain(fetched);
    } else if (progress.state === "retried") {
      await fetched.complete();
      counts.done++;
    } else {
      const job = await read(fetched);
      if (!job) counts.done++;
      else if (isRepeatable(job.request, job.idempotent)) await runAgain(fetched);
      else {
        await onLost(fetched, job);
        counts.lost++;
      }
    }
    onStep();
  }
  return counts;
}
