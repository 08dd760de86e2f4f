import type { Job } from "@berth/protocol";

/** One command of a job: what it does in the sandbox, and how long that takes. */
export interface CommandPlan {
  readonly runMs: number;
  readonly code: number;
  readonly chunks: readonly string[];
}

/** A job as its producer made it. The rules compare its events with this. */
export interface SimJob {
  readonly id: string;
  readonly key: string;
  readonly session: string;
  /** As it is put into the queue: not always something that can be read. */
  readonly data: unknown;
  /** Absent: it cannot be read. */
  readonly job?: Job;
  /** Its request is beside the queue, and `gone` once it was removed. */
  readonly staged?: "there" | "gone";
  readonly commands: readonly CommandPlan[];
  readonly artifact: boolean;
  /** Carrying it out fails in an unforeseen way. */
  readonly breaks: boolean;
  readonly repeatable: boolean;
}

/** A job in its line. A later attempt joins the end of the line. */
export interface Entry {
  readonly job: SimJob;
  readonly attempt: number;
}

export function entryId({
  job,
  attempt,
}: {
  readonly job: Pick<SimJob, "id">;
  readonly attempt: number;
}): string {
  return attempt > 1 ? `${job.id}~${attempt}` : job.id;
}
