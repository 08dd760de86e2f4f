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

/** Adds jobs to sandboxes' own queues. One connection for all of them. */
export class JobQueues {
  readonly #redis: Redis;
  readonly #queues = new Map<SandboxKey, Queue>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** A job whose id is there already is not added again. */
  async add(key: SandboxKey, job: Job): Promise<void> {
    await this.#queue(key).add(job.request.kind, job, {
      jobId: job.id,
      ...(job.priority > 0 ? { priority: job.priority } : {}),
      attempts: 1,
      removeOnComplete: finishedKept,
      removeOnFail: finishedKept,
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }

  #queue(key: SandboxKey): Queue {
    const known = this.#queues.get(key);
    this.#queues.delete(key);
    const queue =
      known ??
      new Queue(jobQueueName, {
        connection: bullConnection(this.#redis),
        prefix: queuePrefix(key),
        streams: { events: { maxLen: bullEventsKept } },
      });
    this.#queues.set(key, queue);
    if (this.#queues.size > queuesKept) {
      const [oldest] = this.#queues;
      if (oldest) {
        this.#queues.delete(oldest[0]);
        void oldest[1].close();
      }
    }
    return queue;
  }
}

/** Where a sandbox's queue keeps jobs that are not finished. */
export function unfinishedKeys(key: SandboxKey): string[] {
  return ["wait", "active", "prioritized", "paused"].map(
    (list) => `${queuePrefix(key)}:${jobQueueName}:${list}`,
  );
}
