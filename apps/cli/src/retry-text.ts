import type { IdentifiedEvent } from "./door.ts";
import { outcomeText } from "./run-job.ts";
import { spanText } from "./terminal/quantities.ts";

/** Describes an attempt that is followed by another. */
export function retryText({
  attempt,
  outcome,
  atMs,
  dueAtMs,
}: Extract<IdentifiedEvent, { type: "retrying" }>): string {
  const ended = outcome.kind === "exited" ? `exit code ${outcome.code}` : outcomeText(outcome);
  return `run ${attempt} ended: ${ended}; the next begins in ${spanText(dueAtMs - atMs)}`;
}
