import { type JobResult, job as jobSchema, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { JobEvents, WaitingJob } from "../events/job-events.ts";
import type { FleetControl } from "../fleet/fleet-control.ts";
import { Leases } from "../leases/leases.ts";
import { queuedId, queueKeys, unfinishedKeys } from "../queues/queue-layout.ts";
import { findQueued } from "../queues/submit.ts";
import type { Schedule } from "../schedule/schedule.ts";
import { isCluster } from "../slots.ts";
import { readAttempts } from "./job-record.ts";

export interface CancellationParts {
  readonly redis: Redis;
  readonly control: FleetControl;
  readonly schedule: Schedule;
  readonly events: JobEvents;
}

/** The reason in the outcome of a job that was cancelled before any worker began it. */
export const cancelledUnbegun = "by request, before it began";

/** The result of a job that no worker began. */
function unbegun({ labels = {} }: WaitingJob): JobResult {
  return {
    outcome: { kind: "cancelled", reason: cancelledUnbegun },
    value: {},
    timing: { wallMs: 0, cpuMs: 0, finishedAtMs: Date.now() },
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}

/**
 * Cancels jobs.
 *
 *   request noted ──not begun──▶ its end is published here, and it is out of the queue ──▶ out of the schedule
 *       └──begun, or being added──▶ its holder gets the cancellation, and publishes its end
 *
 * Publishing the end and beginning are each one step in Redis that checks for the other, so a job has one end and does not run
 * after it. A process that dies between publishing and removing leaves an entry that its next reader finds ended.
 */
export class Cancellation {
  readonly #parts: CancellationParts;

  constructor(parts: CancellationParts) {
    this.#parts = parts;
  }

  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    const { redis, control, schedule, events } = this.#parts;
    await events.requestCancellation(key, jobId);
    const waiting = await this.#waiting(key, jobId);
    const isPublished = waiting && (await events.cancel(waiting, unbegun(waiting))) === "ended";
    // Also if its end is published: a worker may have taken the job, and holds it until its turn.
    await control.cancel(key, jobId);
    if (!isPublished) {
      // A job between two attempts ends when its next attempt is handed on.
      await schedule.hurry(key, jobId);
      return;
    }
    await schedule.remove(jobId, waiting.attempt);
    // The sandbox may be idle now. On a single Redis the script has handled this.
    if (await isCluster(redis)) await new Leases(redis).dropIdle(key, unfinishedKeys(key)).catch(() => {});
  }

  /** The attempt that has not begun, as far as the records show; undefined if there is none, or it is being added right now. */
  async #waiting(key: SandboxKey, jobId: string): Promise<WaitingJob | undefined> {
    const { redis, schedule } = this.#parts;
    const later = await schedule.find(key, jobId);
    if (later) {
      const { attempt, inbox, labels, dueAtMs } = later;
      return { key, jobId, attempt, inbox, labels, dueAtMs, queue: queueKeys(key, jobId, attempt) };
    }
    const { added: attempt, begun } = await readAttempts(redis, key, jobId);
    if (attempt === 0 || begun >= attempt) return undefined;
    const data = await findQueued(redis, key, queuedId(jobId, attempt));
    if (data === undefined) return undefined;
    const { labels } = jobSchema.pick({ labels: true }).safeParse(data).data ?? {};
    return { key, jobId, attempt, inbox: inboxOf(data), labels, queue: queueKeys(key, jobId, attempt) };
  }
}

export function inboxOf(data: unknown): string | undefined {
  const { inbox } = (data ?? {}) as { readonly inbox?: unknown };
  return typeof inbox === "string" ? inbox : undefined;
}
