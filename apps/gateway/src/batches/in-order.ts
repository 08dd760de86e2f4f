/**
 * Runs tasks side by side, those of one key one after another. At most `most` at once, and no more once they hold
 * `mostBytes` together. The first failure stops the rest.
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

  /** Waits for a place; throws what an earlier task failed with. */
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

  /** When all have ended. */
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

  /** Throws what a task failed with, after all have ended. */
  async finish(): Promise<void> {
    await this.idle();
    this.#throwFailure();
  }
}
