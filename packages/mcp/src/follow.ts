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
      if (event.type === "retrying" && needsApproval(event.outcome))
        return { output: output.kept, waitsFor: event.outcome.message, after: last };
      if (event.type !== "stdout" && event.type !== "stderr") continue;
      output.add(event.type, event.bytes);
      progress?.add(event.type, event.bytes);
    }
  } catch (error) {
    if (!until.aborted) throw error;
  } finally {
    await progress?.end();
  }
  return { output: output.kept, after: last };
}
