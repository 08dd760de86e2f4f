import { type Job, queuePrefix, type SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue } from "bullmq";
import { bullConnection } from "./connection.ts";

export const jobQueueName = "jobs";

/** BullMQ's event stream is for its own dashboard; ours say more. Its default keeps half a megabyte per queue. */
const bullEventsKept = 50;
/** Kept for the dashboard only: results live in our streams. */
const finishedKept = { age: 3_600, count: 100 };
/** Queue objects kept per process; each is a few listeners on a shared connection. */
const queuesKept = 1_000;
const reuseMs = 600_000;

/** How to find and check a request that was too large for the queue. */
export interface StagedPayload {
  readonly bytes: number;
  readonly sha256: string;
}

/** Adds jobs to sandboxes' own queues. One connection for all of them. */
export class JobQueues {
  readonly #redis: Redis;
  readonly #queues = new Map<SandboxKey, { readonly queue: Queue; usedAtMs: number }>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** A job whose attempt is there already is not added again. `staged`: its request is beside the queue. */
  async add(key: SandboxKey, job: Job, staged?: StagedPayload): Promise<void> {
    const payload = staged ? { ...job, request: undefined, staged } : job;
    await this.#queue(key).add(job.request.kind, payload, {
      jobId: queuedId(job),
      ...(job.priority > 0 ? { priority: job.priority } : {}),
      attempts: 1,
      removeOnComplete: finishedKept,
      removeOnFail: finishedKept,
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.close()));
    this.#queues.clear();
  }

  #queue(key: SandboxKey): Queue {
    const now = performance.now();
    const known = this.#queues.get(key);
    this.#queues.delete(key);
    // One unused for long may have been removed from Redis, and is made anew: its settings are written when it is made.
    const fresh = known !== undefined && now - known.usedAtMs < reuseMs;
    if (known && !fresh) void known.queue.close();
    const queue = fresh ? known.queue : this.#make(key);
    this.#queues.set(key, { queue, usedAtMs: now });
    const [oldest] = this.#queues;
    if (oldest && this.#queues.size > queuesKept) {
      this.#queues.delete(oldest[0]);
      void oldest[1].queue.close();
    }
    return queue;
  }

  #make(key: SandboxKey): Queue {
    const queue = new Queue(jobQueueName, {
      connection: bullConnection(this.#redis),
      prefix: queuePrefix(key),
      streams: { events: { maxLen: bullEventsKept } },
    });
    queue.on("error", () => {});
    return queue;
  }
}

/** BullMQ keeps finished jobs a while and would take a later attempt for the same. */
function queuedId({ id, attempt }: Pick<Job, "id" | "attempt">): string {
  return attempt > 1 ? `${id}~${attempt}` : id;
}

/** The job's own id, whichever attempt it is. */
export function jobIdOf(queued: string): string {
  return queued.split("~", 1)[0] ?? queued;
}

/** Where a sandbox's queue keeps jobs that are not finished. */
export function unfinishedKeys(key: SandboxKey): string[] {
  return ["wait", "active", "prioritized", "paused"].map(
    (list) => `${queuePrefix(key)}:${jobQueueName}:${list}`,
  );
}
