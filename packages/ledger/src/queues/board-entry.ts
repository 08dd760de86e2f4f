import { isSuccess, type JobResult, type Outcome, outcomeText } from "@berth/protocol";
import { z } from "zod";

/** The mark on the queue entry of an attempt that another one follows. */
export const retryingMark = "retrying";
/** Reasons are cut to this length: a refusal may quote much of a request. */
const mostReason = 1_000;

/** What Bull Board shows of an attempt that ended. Stored in the entry, so it must not contain output. */
export interface BoardEntry {
  /** For our own scripts: how the attempt ended, or `retrying`. */
  readonly mark: string;
  /** BullMQ's return value, as JSON. */
  readonly returned: string;
  /** Why it failed; empty for a success. */
  readonly reason: string;
}

export function endedEntry({ outcome, timing }: Pick<JobResult, "outcome" | "timing">): BoardEntry {
  return {
    mark: JSON.stringify(outcome),
    returned: JSON.stringify({ outcome, timing }),
    reason: isSuccess(outcome) ? "" : outcomeText(outcome).slice(0, mostReason),
  };
}

export function retriedEntry(ended: {
  readonly attempt: number;
  readonly outcome: Outcome;
  readonly dueAtMs: number;
}): BoardEntry {
  const { attempt, outcome, dueAtMs } = ended;
  return {
    mark: retryingMark,
    returned: JSON.stringify({ outcome, nextAttempt: { attempt: attempt + 1, dueAtMs } }),
    reason: `${outcomeText(outcome).slice(0, mostReason)}; attempt ${attempt + 1} follows`,
  };
}

const returned = z.looseObject({
  outcome: z.looseObject({ kind: z.string() }).optional(),
  /** The entry of an attempt that another one follows. */
  nextAttempt: z.looseObject({}).optional(),
  /** The id under which the job was run again. */
  redrivenAs: z.string().optional(),
});

/** The return value of an entry, as far as it can be read: older versions wrote another one. */
export function readReturned(text: string | null | undefined): z.infer<typeof returned> {
  return returned.catch({}).parse(JSON.parse(text ?? "{}"));
}

/** For a script's ARGV. */
export function boardArguments({ mark, returned, reason }: BoardEntry): string[] {
  return [mark, returned, reason];
}
