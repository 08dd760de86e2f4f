import { type DeadLetter, DeadLetters as Letters } from "@berth/ledger";
import type { Job } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Failed jobs that an operator should look at: unreadable, refused by a fault of Berth's own, lost, or out of attempts. */
export class DeadLetters {
  readonly #letters: Letters;
  readonly #enqueue: (job: Job) => Promise<unknown>;

  /** @internal Use `berth.deadLetters`. */
  constructor(redis: Redis, enqueue: (job: Job) => Promise<unknown>) {
    this.#letters = new Letters(redis);
    this.#enqueue = enqueue;
  }

  /** Newest first. `after` is the cursor of the last letter read. */
  list(options: { readonly limit?: number; readonly after?: string } = {}): Promise<DeadLetter[]> {
    return this.#letters.list(options);
  }

  /**
   * Runs a job again as `<id>-redrive-<n>`, and returns that id. Removes the letter; the first run's result and events stay. Throws
   * `not-redrivable`, whose `context.reason` is `not-found` (no such letter) or `unreadable` (the job cannot be parsed).
   */
  redrive(jobId: string): Promise<string> {
    return this.#letters.redrive(jobId, this.#enqueue);
  }

  /** False: no such letter. */
  remove(jobId: string): Promise<boolean> {
    return this.#letters.remove(jobId);
  }

  close(): Promise<void> {
    return this.#letters.close();
  }
}
