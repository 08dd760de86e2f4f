import type { JobResult, KeptOutput, Outcome } from "@berth/protocol";
import { shownBytes } from "./answer.ts";
import { GatheredOutput } from "./gathered-output.ts";
import type { FollowedJob } from "./port.ts";
import { type Notify, Progress } from "./progress.ts";

export interface Followed {
  readonly output: KeptOutput;
  /** Absent: it has not ended yet. */
  readonly result?: JobResult;
  /** It waits for an administrator's approval, in words: nothing happens until then. */
  readonly waitsFor?: string;
  /** Id of the last event that was seen. */
  readonly after: string;
}

export interface FollowOptions {
  /** Reading ends then, and the job goes on. */
  readonly until: AbortSignal;
  readonly after?: string | undefined;
  readonly notify?: Notify | undefined;
}

function needsApproval(outcome: Outcome): outcome is Extract<Outcome, { kind: "refused" }> {
  return outcome.kind === "refused" && outcome.code === "approval-needed";
}

/** Reads a job's events until its end, or until it is time to answer. */
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
