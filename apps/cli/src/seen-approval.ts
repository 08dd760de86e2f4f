import { UsageError } from "./complaint.ts";
import type { SeenApproval } from "./door.ts";

/** As lists show it: `JOB:DIGEST`. Ids of jobs have no colon. */
export function shownApproval({ jobId, digest }: SeenApproval): string {
  return `${jobId}:${digest}`;
}

export function seenApproval(text: string): SeenApproval {
  const { jobId, digest } = readSeen(text);
  if (digest === undefined)
    throw new UsageError(
      `${jobId} lacks the digest of what you saw: look at it with \`berth approvals show ${jobId}\`, then \`berth approve ${jobId}:DIGEST\``,
    );
  return { jobId, digest };
}

/** The digest may be left out. */
export function readSeen(text: string): Pick<SeenApproval, "jobId"> & Partial<SeenApproval> {
  const [jobId = "", digest] = text.split(":", 2);
  return digest === undefined || digest === "" ? { jobId } : { jobId, digest };
}
