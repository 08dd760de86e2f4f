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

/** Of a job that no worker began. */
function unbegun({ labels = {} }: WaitingJob): JobResult {
  return {
    outcome: { kind: "cancelled", reason: "by request, before it began" },
    value: {},
    timing: { wallMs: 0, cpuMs: 0, finishedAtMs: Date.now() },
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
  };
}

/**
 * Ends jobs that somebody no longer wants.
 *
 *   wish noted ──not begun──▶ its end is told here, and it is out of the queue ──▶ out of the schedule
 *       └──begun, or on its way──▶ whoever holds its sandbox is told, and tells its end
 *
 * Telling and beginning are each one step in Redis that looks for the other, so a job has one end and does not run after it. Dying
 * between telling and taking out leaves an entry that whoever comes to it finds ended.
 */
export class Cancellation {
  readonly #parts: CancellationParts;

  constructor(parts: CancellationParts) {
    this.#parts = parts;
  }

  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    const { redis, control, schedule, events } = this.#parts;
    await events.wishCancelled(key, jobId);
    const waiting = await this.#waiting(key, jobId);
    const told = waiting && (await events.cancel(waiting, unbegun(waiting))) === "told";
    // Also when its end is told: one that is taken already waits for its turn with a worker.
    await control.cancel(key, jobId);
    if (!told) {
      // One that is between two attempts ends with the next.
      await schedule.hurry(key, jobId);
      return;
    }
    await schedule.remove(jobId, waiting.attempt);
    // Elsewhere the script has done it: the sandbox may have nothing else to do.
    if (await isCluster(redis)) await new Leases(redis).dropIdle(key, unfinishedKeys(key)).catch(() => {});
  }

  /** The attempt that has not begun as far as anybody knows; undefined when there is none, or it is being added just now. */
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
