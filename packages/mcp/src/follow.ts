import type { JobResult, KeptOutput, Outcome } from "@berth/protocol";
import { shownBytes } from "./answer.ts";
import { GatheredOutput } from "./gathered-output.ts";
import type { FollowedJob } from "./port.ts";
import { type Notify, Progress } from "./progress.ts";

export interface Followed {
  readonly output: KeptOutput;
  /** Absent: the job has not ended. */
  readonly result?: JobResult;
  /** Text about the administrator's approval that the job waits for. */
  readonly waitsFor?: string;
  /** Id of the last event read. */
  readonly after: string;
}

export interface FollowOptions {
  /** Stops the reading; the job continues. */
  readonly until: AbortSignal;
  readonly after?: string | undefined;
  readonly notify?: Notify | undefined;
}

/** Each run's output was masked alone, so none may pass for a part of another's. */
const runsAgain = Buffer.from("\n[that run did not succeed; the job runs again]\n");

function needsApproval(outcome: Outcome): outcome is Extract<Outcome, { kind: "refused" }> {
  return outcome.kind === "refused" && outcome.code === "approval-needed";
}

/** Reads a job's events until its end, or until the call must be answered. */
export async function follow(
  job: FollowedJob,
  { until, after = "", notify }: FollowOptions,
): Promise<Followed> {
  const output = new GatheredOutput(shownBytes);
  const progress = notify && new Progress(notify);
  let last = after;
  try {
    for await (const event of job.events(after, until)) {
      last = event.id;
      if (event.type === "finished") return { output: output.kept, result: event.result, after: last };
      if (event.type === "retrying" && needsApproval(event.outcome)) {
        // Read from the beginning, events may be of a time before the decision.
        if ((await job.status()) === "scheduled")
          return { output: output.kept, waitsFor: event.outcome.message, after: last };
        continue;
      }
      const piece = event.type === "retrying" ? { type: "stderr" as const, bytes: runsAgain } : event;
      if (piece.type !== "stdout" && piece.type !== "stderr") continue;
      output.add(piece.type, piece.bytes);
      progress?.add(piece.type, piece.bytes);
    }
  } catch (error) {
    if (!until.aborted) throw error;
  } finally {
    await progress?.end();
  }
  return { output: output.kept, after: last };
}
