import { Leases } from "@berth/lease";
import { type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import { JobQueues, queuedId, type Schedule, unfinishedKeys } from "@berth/queue";
import type { Redis } from "@berth/redis";
import type { JobEvents, WaitingJob } from "@berth/streams";
import type { FleetControl } from "./fleet-control.ts";

export interface CancellationParts {
  readonly redis: Redis;
  readonly control: FleetControl;
  readonly schedule: Schedule;
  readonly events: JobEvents;
}

const unbegun: JobResult = {
  outcome: { kind: "cancelled", reason: "by request, before it began" },
  value: {},
  timing: { wallMs: 0, cpuMs: 0 },
};

/**
 * Ends jobs that somebody no longer wants.
 *
 *   wish noted ──not begun──▶ its end is told here ──▶ out of the queue or the schedule
 *       └──begun, or on its way──▶ whoever holds its sandbox is told, and tells its end
 *
 * Telling and beginning are each one step in Redis that looks for the other, so a job has one end and does not run after it. Dying
 * between telling and taking out leaves an entry that whoever comes to it finds ended.
 */
export class Cancellation {
  readonly #parts: CancellationParts;
  readonly #queues: JobQueues;
  readonly #leases: Leases;

  constructor(parts: CancellationParts) {
    this.#parts = parts;
    this.#queues = new JobQueues(parts.redis);
    this.#leases = new Leases(parts.redis);
  }

  async cancel(key: SandboxKey, jobId: string): Promise<void> {
    const { control, schedule, events } = this.#parts;
    await control.wishCancelled(key, jobId);
    const waiting = await this.#waiting(key, jobId);
    const told = waiting && (await events.cancel(waiting, unbegun)) === "told";
    // Also when its end is told: one that is taken already waits for its turn with a worker.
    await control.cancel(key, jobId);
    if (!told) {
      // One that is between two attempts ends with the next.
      await schedule.hurry(jobId);
      return;
    }
    await schedule.remove(jobId, waiting.attempt);
    await this.#queues.remove(key, queuedId(jobId, waiting.attempt));
    // That may have been the sandbox's last job, with no worker there to see it.
    await this.#leases.dropIdle(key, unfinishedKeys(key));
  }

  async close(): Promise<void> {
    await this.#queues.close();
  }

  /** The attempt that has not begun as far as anybody knows; undefined when there is none, or it is being added just now. */
  async #waiting(key: SandboxKey, jobId: string): Promise<WaitingJob | undefined> {
    const { redis, schedule } = this.#parts;
    const later = await schedule.find(jobId);
    if (later) return { key, jobId, attempt: later.attempt, inbox: later.inbox, dueAtMs: later.dueAtMs };
    const [added, begun] = await redis.hmget(redisKeys.job(jobId), "added", "begun");
    if (!added || Number(begun) >= Number(added)) return undefined;
    const data = await this.#queues.find(key, queuedId(jobId, Number(added)));
    if (data === undefined) return undefined;
    return { key, jobId, attempt: Number(added), inbox: inboxOf(data) };
  }
}

function inboxOf(data: unknown): string | undefined {
  const { inbox } = (data ?? {}) as { readonly inbox?: unknown };
  return typeof inbox === "string" ? inbox : undefined;
}
