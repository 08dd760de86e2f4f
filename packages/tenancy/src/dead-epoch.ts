import { isRepeatable, type Job, type JobResult, type SandboxKey } from "@berth/protocol";
import { bareResult } from "./bare-result.ts";
import type { Endings } from "./endings.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface DeadEpoch {
  /** In the order of the line. */
  readonly left: readonly FetchedJob[];
  readonly key: SandboxKey;
  readonly ports: Pick<TenancyPorts, "events" | "report">;
  readonly endings: Pick<Endings, "addMissingDeadLetter">;
  /** The job itself; undefined if it could not be read and was ended for that. */
  readonly read: (fetched: FetchedJob) => Promise<Job | undefined>;
  /** Takes its beginning back, if this tenancy itself began it and the answer was lost. */
  readonly takeBack: (fetched: FetchedJob) => Promise<boolean>;
  /** Lines up a job that is to begin in its turn. */
  readonly onAgain: (fetched: FetchedJob) => Promise<void>;
  /** A job that began, whose end is unknown, and that must not begin again. */
  readonly onLost: (fetched: FetchedJob, job: Job, result: JobResult) => Promise<void>;
  /** After each job. */
  readonly onStep: () => void;
}

type Fate = "lost" | "again" | "done";

const lost = bareResult({
  kind: "lost",
  message: "its worker died while it ran; it may have run in part and was not run again",
});

/**
 * Takeover of a dead epoch's jobs, one by one: completes those whose end is published, lines up those that never began or are safe to
 * repeat, and ends the others as lost.
 */
export async function takeOverDeadEpoch(options: DeadEpoch): Promise<void> {
  const { left, key, ports, onStep } = options;
  const counts: Record<Fate, number> = { lost: 0, again: 0, done: 0 };
  for (const fetched of left) {
    counts[await takeOverJob(options, fetched)]++;
    onStep();
  }
  if (left.length > 0) ports.report({ event: "tenancy.settled", key, ...counts });
}

async function takeOverJob(options: DeadEpoch, fetched: FetchedJob): Promise<Fate> {
  const { ports, endings, read, takeBack, onAgain, onLost } = options;
  const progress = await ports.events.progress(fetched.id, fetched.attempt);
  if (progress.state === "finished") await endings.addMissingDeadLetter(fetched, progress.result);
  if (progress.state === "finished" || progress.state === "retried") {
    await fetched.complete();
    return "done";
  }
  if (progress.state === "not-started" || (await takeBack(fetched))) {
    await onAgain(fetched);
    return "again";
  }
  const job = await read(fetched);
  if (!job) return "done";
  if (isRepeatable(job.request, job.idempotent)) {
    await onAgain(fetched);
    return "again";
  }
  await onLost(fetched, job, lost);
  return "lost";
}
