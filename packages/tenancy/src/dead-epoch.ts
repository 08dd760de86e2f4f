import { isFault, isRepeatable, type Job, type JobResult, job as jobSchema } from "@berth/protocol";
import type { EventsPort, FetchedJob } from "./tenancy-ports.ts";

export interface DeadEpoch {
  /** The first in line first. */
  readonly left: readonly FetchedJob[];
  readonly events: EventsPort;
  /** A job whose end was told: what follows the telling may not have been done. */
  readonly onTold: (fetched: FetchedJob, result: JobResult) => Promise<void>;
  /** A job that began, whose end nobody knows, and that must not begin again. */
  readonly onLost: (fetched: FetchedJob, job: Job) => Promise<void>;
  /** After each job. */
  readonly onStep: () => void;
}

/** A dead epoch's jobs, one by one: told already, never begun, safe to repeat, or lost. */
export async function settleDeadEpoch({ left, events, onTold, onLost, onStep }: DeadEpoch) {
  const counts = { lost: 0, back: 0, done: 0 };
  const back: FetchedJob[] = [];
  for (const fetched of left) {
    const progress = await events.progress(fetched.id);
    if (progress.state === "finished") {
      await onTold(fetched, progress.result);
      counts.done++;
    } else if (progress.state === "not-started") {
      // One whose attempt has ended goes back, too: it is completed when its turn comes.
      back.push(fetched);
    } else {
      // One that cannot be read goes back too: it is refused when its turn comes.
      const parsed = jobSchema.safeParse(await fetched.load().catch(unlessItPasses));
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

/** What may be read a moment later is not to be taken for unreadable: it would run again. */
function unlessItPasses(error: unknown): undefined {
  if (!isFault(error) || error.retry) throw error;
}
