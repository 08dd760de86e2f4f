import { textWithEnd } from "./agent-text.ts";
import type { JobResult, JobValue } from "./job-result.ts";

/** A result as the worker publishes it. */
export interface StoredResult extends Omit<JobResult, "text"> {
  readonly value: JobValue & {
    /** A command's output for agents. Absent if it equals the only non-empty one of `stdout` and `stderr`. */
    readonly shown?: string;
  };
}

/** Adds the agent's text to a result from Redis, and to each of its steps. */
export function withText({ value: { shown, ...value }, ...result }: StoredResult): JobResult {
  const { outcome } = result;
  if (value.steps) return { ...result, value: { ...value, steps: value.steps.map(withText) } };
  if (outcome.kind === "done") return { ...result, value };
  const output = shown ?? `${value.stdout ?? ""}${value.stderr ?? ""}`;
  return { ...result, value, text: textWithEnd(output, outcome) };
}
