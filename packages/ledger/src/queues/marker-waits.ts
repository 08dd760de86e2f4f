import { setTimeout as sleep } from "node:timers/promises";
import { redisKeys } from "@berth/protocol";
import { blockingDuplicate, type Redis } from "@berth/redis";
import { type BackendFactory, createRedisBackend, type RedisQueueBackend } from "bullmq";

/** The longest call. A queue whose interruption Redis refused waits for at most this long. */
const callMs = 1_000;
/** BZPOPMIN takes 0 for "for ever". */
const leastMs = 1;
/** Redis answers every call within `callMs`. After this much silence the connection is reopened. */
const silentMs = 5_000;
/** Pause after an error, as while Redis is away. */
const restMs = 250;
const interruptionKeptMs = 60_000;

/** The result of `waitForJob` of BullMQ's backends: a member of a queue's marker, and when the queue's next entry is due. */
interface Marker {
  readonly member: string;
  readonly score: number;
}

interface Waiting {
  readonly untilMs: number;
  readonly settled: PromiseWithResolvers<Marker | null>;
}

/**
 * Waits for entries of all the fleet's queues that one process takes from, over one blocking connection. BullMQ alone opens
 * one for each queue. Pass `backend` to a `Worker` as its factory. The connection ends with the last of these workers.
 *
 * A call names the markers of only those queues whose worker waits: a marker that is popped for a busy worker would be missed by an
 * idle one elsewhere. A worker that begins to wait while a call is under way ends that call through a key of this process's own.
 */
export class MarkerWaits {
  readonly #redis: Redis;
  readonly #ownKey: string;
  readonly #waiting = new Map<string, Waiting>();
  readonly #markers = new Set<string>();
  #asked: ReadonlySet<string> = new Set();
  #reader: Redis | undefined;
  #isReading = false;

  constructor(redis: Redis, instance: string) {
    this.#redis = redis;
    this.#ownKey = redisKeys.waiting(instance);
  }

  readonly backend: BackendFactory<RedisQueueBackend> = (name, options, connections) => {
    const backend = createRedisBackend(name, options, { ...connections, withBlockingConnection: false });
    const marker = backend.toKey("marker");
    const close = backend.close.bind(backend);
    this.#markers.add(marker);
    backend.waitForJob = (seconds) => this.#wait(marker, seconds * 1_000);
    backend.disconnectBlocking = async () => this.#giveUp(marker);
    backend.close = (isForced) => {
      this.#leave(marker);
      return close(isForced);
    };
    return backend;
  };

  #wait(marker: string, ms: number): Promise<Marker | null> {
    const settled = Promise.withResolvers<Marker | null>();
    this.#waiting.set(marker, { untilMs: performance.now() + ms, settled });
    if (!this.#isReading) void this.#read();
    else if (!this.#asked.has(marker)) void this.#interrupt();
    return settled.promise;
  }

  /** Rejects the wait: after a wait that resolves, BullMQ's worker takes an entry, which a closing worker would not run. */
  #giveUp(marker: string): void {
    this.#waiting.get(marker)?.settled.reject(new Error("Connection is closed."));
    this.#waiting.delete(marker);
  }

  #leave(marker: string): void {
    this.#giveUp(marker);
    this.#markers.delete(marker);
    if (this.#markers.size > 0) return;
    this.#reader?.disconnect();
    this.#reader = undefined;
  }

  #settle(marker: string, found: Marker | null): void {
    this.#waiting.get(marker)?.settled.resolve(found);
    this.#waiting.delete(marker);
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const reader = this.#reader ?? blockingDuplicate(this.#redis, silentMs);
    this.#reader = reader;
    while (this.#waiting.size > 0 && reader === this.#reader) {
      try {
        await this.#readOnce(reader);
      } catch {
        await sleep(restMs);
      }
    }
    this.#isReading = false;
    // A worker began to wait after the last one had left, when the loop was still ending.
    if (this.#waiting.size > 0) void this.#read();
  }

  async #readOnce(reader: Redis): Promise<void> {
    const soonest = Math.min(...[...this.#waiting.values()].map(({ untilMs }) => untilMs));
    const leftMs = Math.max(leastMs, Math.min(callMs, soonest - performance.now()));
    this.#asked = new Set(this.#waiting.keys());
    const popped = await reader.bzpopmin(this.#ownKey, ...this.#asked, leftMs / 1_000);
    if (popped) this.#settle(popped[0], { member: popped[1], score: Number(popped[2]) });
    for (const [marker, { untilMs }] of this.#waiting)
      if (untilMs <= performance.now()) this.#settle(marker, null);
  }

  async #interrupt(): Promise<void> {
    try {
      await this.#redis.zadd(this.#ownKey, 0, "0");
      await this.#redis.pexpire(this.#ownKey, interruptionKeptMs);
    } catch {
      // Redis is away or full. The call under way ends at its own timeout.
    }
  }
}
