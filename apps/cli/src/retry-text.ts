import type { IdentifiedEvent } from "./door.ts";
import { outcomeText } from "./run-job.ts";
import { spanText } from "./terminal/quantities.ts";

/** Describes an attempt that is followed by another. One that waits for an approval has not begun: a decision may come at any time. */
export function retryText({
  attempt,
  outcome,
  atMs,
  dueAtMs,
}: Extract<IdentifiedEvent, { type: "retrying" }>): string {
  if (outcome.kind === "refused" && outcome.code === "approval-needed") return outcomeText(outcome);
  const ended = outcome.kind === "exited" ? `exit code ${outcome.code}` : outcomeText(outcome);
  return `run ${attempt} ended: ${ended}; the next begins in ${spanText(dueAtMs - atMs)}`;
}
