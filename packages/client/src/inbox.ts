import { type JobResult, redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** How long one read waits; only how soon close() is noticed depends on it. */
const blockMs = 2_000;
const retryMs = 250;

/** One blocking connection that waits for the ends of any number of jobs. */
export class Inbox {
  readonly name: string;
  readonly #redis: Redis;
  readonly #waiting = new Map<string, (result: JobResult) => void>();
  #last = "0-0";
  #reading: Promise<void> | undefined;
  #closed = false;

  constructor(redis: Redis, name: string) {
    this.#redis = redis;
    this.name = name;
  }

  /** Calls back when the job has ended. */
  expect(jobId: string, onResult: (result: JobResult) => void): void {
    this.#waiting.set(jobId, onResult);
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
  }

  forget(jobId: string): void {
    this.#waiting.delete(jobId);
  }

  close(): void {
    this.#closed = true;
    this.#redis.disconnect();
  }

  async #read(): Promise<void> {
    const stream = redisKeys.inbox(this.name);
    while (!this.#closed && this.#waiting.size > 0) {
      try {
        const read = await this.#redis.xread("COUNT", 500, "BLOCK", blockMs, "STREAMS", stream, this.#last);
        for (const [id, fields] of read?.[0]?.[1] ?? []) {
          this.#last = id;
          const [, jobId = "", , data = "{}"] = fields;
          const onResult = this.#waiting.get(jobId);
          this.#waiting.delete(jobId);
          onResult?.(JSON.parse(data) as JobResult);
        }
      } catch {
        if (!this.#closed) await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }
}
