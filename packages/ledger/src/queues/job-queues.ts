import { type Job, queuePrefix, type SandboxKey } from "@berth/protocol";
import { orRedisFull, type Redis } from "@berth/redis";
import { Job as BullJob, Queue } from "bullmq";
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

  readonly #onClose = () => {
    this.#state = { connection: this.#state.connection + 1, loaded: false };
  };
  /** Which connection this is, and whether Redis is known to have the script that adds. */
  #state = { connection: 0, loaded: false };

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on("close", this.#onClose);
  }

  /**
   * A job whose attempt is there already is not added again. `staged`: its request is beside the queue. `then` is called when the
   * job is on its way: what it sends on the same connection is carried out after it, in the same round trip.
   */
  async add<T>(key: SandboxKey, job: Job, then: () => Promise<T>, staged?: StagedPayload): Promise<T> {
    const { queue, client } = await this.#ready(key);
    const payload = staged ? { ...job, request: undefined, staged } : job;
    const options = {
      ...(job.priority > 0 ? { priority: job.priority } : {}),
      attempts: 1,
      removeOnComplete: finishedKept,
      removeOnFail: finishedKept,
    };
    const queued = new BullJob(queue, job.request.kind, payload, options, queuedId(job.id, job.attempt));
    const { connection } = this.#state;
    const adding = queued.addJob(client).catch(orRedisFull("adding a job"));
    if (this.#state.loaded) {
      const [, result] = await Promise.all([adding, then()]);
      if (this.#state.connection === connection) return result;
    }
    // A Redis that does not have BullMQ's script yet is sent it only when it says so, and `then` would overtake it.
    await adding;
    this.#state.loaded = this.#state.connection === connection;
    return await then();
  }

  /** An attempt as it was added, not checked; undefined when its queue does not have it, or not any more. */
  async find(key: SandboxKey, queued: string): Promise<unknown> {
    const data = await this.#redis.hget(entryKey(key, queued), "data");
    return data === null ? undefined : JSON.parse(data);
  }

  async close(): Promise<void> {
    this.#redis.off("close", this.#onClose);
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.close()));
    this.#queues.clear();
  }

  /** BullMQ waits for a connection without a bound, and keeps a queue that could not look at Redis' version broken for ever. */
  async #ready(key: SandboxKey) {
    if (this.#redis.status !== "ready") await this.#redis.ping();
    const queue = this.#queue(key);
    try {
      return { queue, client: await queue.backend.client };
    } catch (error) {
      if (this.#queues.get(key)?.queue === queue) this.#queues.delete(key);
      queue.close().catch(() => {});
      throw error;
    }
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
export function queuedId(id: string, attempt: number): string {
  return attempt > 1 ? `${id}~${attempt}` : id;
}

/** The job's own id, whichever attempt it is. */
export function jobIdOf(queued: string): string {
  return queued.split("~", 1)[0] ?? queued;
}

/** Which attempt it is. */
export function attemptOf(queued: string): number {
  return Number(queued.split("~", 2)[1] ?? 1);
}

/** Where BullMQ keeps one attempt of a job: for scripts that look at it, or take it out. */
export function queueKeys(key: SandboxKey, id: string, attempt: number) {
  const queued = queuedId(id, attempt);
  const entry = entryKey(key, queued);
  return { queuedId: queued, entryKey: entry, lockKey: `${entry}:lock`, unfinishedKeys: unfinishedKeys(key) };
}

/** Where BullMQ keeps one job of a sandbox's queue. */
export function entryKey(key: SandboxKey, queued: string): string {
  return `${queuePrefix(key)}:${jobQueueName}:${queued}`;
}

/** The list of what is taken from a sandbox's queue, the last taken first. */
export function takenKey(key: SandboxKey): string {
  return `${queuePrefix(key)}:${jobQueueName}:active`;
}

/** Where a sandbox's queue keeps jobs that are not finished. */
export function unfinishedKeys(key: SandboxKey): string[] {
  return ["wait", "active", "prioritized", "paused"].map(
    (list) => `${queuePrefix(key)}:${jobQueueName}:${list}`,
  );
}
