import type { JobResult, JobValue } from "@berth/protocol";

/**
 * Results and inboxes carry at most this much of a job's result. Each keeps the ends of a hundred thousand jobs, and a result may be a
 * megabyte. The job's own events have the whole result.
 */
export const excerptBytes = 32 * 1024;

/** A long result as JSON within `excerptBytes`: the beginning of its texts, its numbers, no lists. */
export function excerptOf(result: JobResult): string {
  for (let characters = excerptBytes / 4; ; characters = Math.floor(characters / 2)) {
    const text = JSON.stringify(shortened(result, characters));
    if (Buffer.byteLength(text) <= excerptBytes) return text;
  }
}

function shortened({ outcome, value, text: _, ...rest }: JobResult, characters: number): JobResult {
  const cut = ([name, field]: [string, unknown]) =>
    typeof field === "string" ? [name, field.slice(0, characters)] : [name, field];
  const flat = Object.entries(value).filter(([name, field]) => typeof field !== "object" && name !== "shown");
  return {
    outcome: Object.fromEntries(Object.entries(outcome).map(cut)) as JobResult["outcome"],
    value: Object.fromEntries(flat.map(cut)) as JobValue,
    ...rest,
  };
}
