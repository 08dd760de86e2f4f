import { z } from "zod";
import type { JobRequest } from "./job-kinds.ts";
import type { JobResult } from "./job-result.ts";
import { withoutWorkspacePrefix } from "./workspace-path.ts";

/** A file that a job wrote, as its `file` event reports it. */
export const writtenFile = z.strictObject({
  /** Relative to the workspace, without a leading slash. */
  path: z.string(),
  size: z.number().int().min(0),
  sha256: z.string(),
});
export type WrittenFile = Readonly<z.infer<typeof writtenFile>>;

/** Files reported per job: a thousand steps may each write one. */
const reportedMost = 100;

/** Files that `write` and `edit` wrote, as jobs or as steps. Commands, patches and archives do not report theirs. */
export function writtenFiles(request: JobRequest, { outcome, value }: JobResult): WrittenFile[] {
  if (request.kind === "steps") {
    const results = value.steps ?? [];
    return results
      .flatMap((result, index) => {
        const step = request.steps[index];
        return step ? writtenFiles(step, result) : [];
      })
      .slice(0, reportedMost);
  }
  const { size, sha256 } = value;
  if (request.kind !== "write" && request.kind !== "edit") return [];
  if (outcome.kind !== "done" || size === undefined || sha256 === undefined) return [];
  return [{ path: withoutWorkspacePrefix(request.path), size, sha256 }];
}
