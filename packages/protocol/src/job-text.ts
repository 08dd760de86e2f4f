import { textWithEnd } from "./agent-text.ts";
import type { JobResult, JobValue } from "./job-result.ts";

/** A result as the worker publishes it. */
export interface StoredResult extends Omit<JobResult, "text"> {
  readonly value: JobValue & {
    /** A command's output as agents see it. Absent where it is the same as `stdout` or `stderr`, whichever is not empty. */
    readonly shown?: string;
  };
}

/** Adds the agent's text to a result that was read from Redis, and to each of its steps. */
export function withText({ outcome, value, timing }: StoredResult): JobResult {
  const { shown, ...rest } = value;
  if (rest.steps) return { outcome, value: { ...rest, steps: rest.steps.map(withText) }, timing };
  if (outcome.kind === "done") return { outcome, value: rest, timing };
  const output = shown ?? `${rest.stdout ?? ""}${rest.stderr ?? ""}`;
  return { outcome, value: rest, timing, text: textWithEnd(output, outcome) };
}
