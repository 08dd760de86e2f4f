import { type DeadLetter, DeadLetters as Letters } from "@berth/ledger";
import type { Job } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Failed jobs that an operator should look at: unreadable, refused by a fault of Berth's own, lost, or out of attempts. */
export class DeadLetters {
  readonly #letters: Letters;
  readonly #enqueue: (job: Job) => Promise<unknown>;

  /** @internal Its users get it from a `Berth`. */
  constructor(redis: Redis, enqueue: (job: Job) => Promise<unknown>) {
    this.#letters = new Letters(redis);
    this.#enqueue = enqueue;
  }

  /** Newest first. `after`: the cursor of the last one seen. */
  list(options: { readonly limit?: number; readonly after?: string } = {}): Promise<DeadLetter[]> {
    return this.#letters.list(options);
  }

  /**
   * Runs a job again, as `<id>-redrive-<n>`, and gives that id back. The letter is removed; the first run's result and events stay. Throws
   * the fault `not-redrivable`, whose `context.reason` is `not-found` (no such letter) or `unreadable` (the job cannot be parsed).
   */
  redrive(jobId: string): Promise<string> {
    return this.#letters.redrive(jobId, this.#enqueue);
  }

  /** False: there is none. */
  remove(jobId: string): Promise<boolean> {
    return this.#letters.remove(jobId);
  }

  close(): Promise<void> {
    return this.#letters.close();
  }
}
