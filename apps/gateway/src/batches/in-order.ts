/** Runs tasks side by side, so many at most, those of one key one after another. The first failure stops the rest. */
export class InOrder {
  readonly #most: number;
  readonly #running = new Set<Promise<void>>();
  readonly #lastOf = new Map<string, Promise<void>>();
  #failure: { readonly error: unknown } | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** Waits for a place; throws what an earlier task failed with. */
  async add(key: string, task: () => Promise<void>): Promise<void> {
    const before = this.#lastOf.get(key) ?? Promise.resolve();
    const done = before
      .then(() => this.#run(task))
      .finally(() => {
        this.#running.delete(done);
        if (this.#lastOf.get(key) === done) this.#lastOf.delete(key);
      });
    this.#running.add(done);
    this.#lastOf.set(key, done);
    if (this.#running.size >= this.#most) await Promise.race(this.#running);
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
