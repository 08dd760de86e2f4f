import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** A worker that has not been heard of for three of these is taken for gone. */
export const heartbeatMs = 2_000;

/** What a worker says of itself, for people and autoscalers. Nothing decides by it: that is the lease's business. */
export class Registry {
  readonly #redis: Redis;
  readonly #worker: string;
  readonly #describe: () => Record<string, string | number>;
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, worker: string, describe: () => Record<string, string | number>) {
    this.#redis = redis;
    this.#worker = worker;
    this.#describe = describe;
  }

  start(): void {
    void this.#beat();
    this.#timer = setInterval(() => void this.#beat(), heartbeatMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#redis.del(redisKeys.worker(this.#worker)).catch(() => {});
    await this.#redis.zrem(redisKeys.workers, this.#worker).catch(() => {});
  }

  async #beat(): Promise<void> {
    try {
      await this.#redis.hset(redisKeys.worker(this.#worker), this.#describe());
      await this.#redis.pexpire(redisKeys.worker(this.#worker), 3 * heartbeatMs);
      await this.#redis.zadd(redisKeys.workers, Date.now(), this.#worker);
    } catch {
      // Redis is away; its connection tells of it once.
    }
  }
}
