/**
 * Runs tasks in parallel, but tasks of one key in order. Admits at most `most` tasks, and none while they hold `mostBytes`
 * together. The first failure stops the rest.
 */
export class InOrder {
  readonly #most: number;
  readonly #mostBytes: number;
  readonly #running = new Set<Promise<void>>();
  readonly #lastOf = new Map<string, Promise<void>>();
  #bytes = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(most: number, mostBytes = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#mostBytes = mostBytes;
  }

  /** Waits for a free slot; throws if an earlier task failed. */
  async add(key: string, task: () => Promise<void>, bytes = 0): Promise<void> {
    const before = this.#lastOf.get(key) ?? Promise.resolve();
    const done = before
      .then(() => this.#run(task))
      .finally(() => {
        this.#running.delete(done);
        this.#bytes -= bytes;
        if (this.#lastOf.get(key) === done) this.#lastOf.delete(key);
      });
    this.#running.add(done);
    this.#bytes += bytes;
    this.#lastOf.set(key, done);
    while (this.#running.size >= this.#most || this.#bytes >= this.#mostBytes)
      await Promise.race(this.#running);
    this.#throwFailure();
  }

  /** Resolves when all tasks have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #run(task: () => Promise<void>): Promise<void> {
    if (this.#failure) return;
    try {
      await task();
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Waits until all tasks have ended; throws if one failed. */
  async finish(): Promise<void> {
    await this.idle();
    this.#throwFailure();
  }
}
