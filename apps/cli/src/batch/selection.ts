import { isSuccess } from "@berth/protocol";
import { Complaint } from "../complaint.ts";
import type { BatchLine } from "./batch-file.ts";
import { readResults } from "./read-results.ts";

/** Selects the lines of a file of jobs that form the batch, and gives each its position. */
export interface Selection {
  readonly total: number;
  /** The position of a line, by its index in the file. */
  positionOf(index: number): number | undefined;
  /** Throws when the line differs from the one in the earlier results. */
  check(line: BatchLine): void;
}

export function everyLine(total: number): Selection {
  return { total, positionOf: (index) => (index < total ? index : undefined), check: () => {} };
}

/** Selects the lines that failed or were lost in an earlier run, by its results file. A line's last complete result counts. */
export async function failedLines(path: string, jobs: { file: string; total: number }): Promise<Selection> {
  const failed = new Map<number, { readonly tenant: string; readonly session: string }>();
  for await (const { line } of readResults(path)) {
    const { index, tenant, session, outcome } = line;
    if (index >= jobs.total) throw ofOther(path, jobs.file, index);
    if (isSuccess(outcome)) failed.delete(index);
    else failed.set(index, { tenant, session });
  }
  const positions = new Map([...failed.keys()].sort((a, b) => a - b).map((index, at) => [index, at]));
  return {
    total: positions.size,
    positionOf: (index) => positions.get(index),
    check: ({ index, job }) => {
      const was = failed.get(index);
      if (was && was.tenant !== "" && (was.tenant !== job.tenant || was.session !== job.session))
        throw ofOther(path, jobs.file, index);
    },
  };
}

function ofOther(path: string, file: string, index: number): Complaint {
  return new Complaint(`${path} has results of other jobs than ${file}: job ${index} is not the same`, {
    advice: ["name the file of jobs that those results came from"],
  });
}
