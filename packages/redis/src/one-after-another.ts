/** Runs a task once at a time. Callers that arrive during a run share the next run. */
export class OneAfterAnother<T> {
  readonly #run: () => Promise<T>;
  #current: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | undefined;
  #asked = 0;

  constructor(run: () => Promise<T>) {
    this.#run = run;
  }

  /** Whether no call waits. */
  get isIdle(): boolean {
    return this.#asked === 0;
  }

  /** Resolves with a run that starts after this call. */
  async next(): Promise<T> {
    this.#asked++;
    this.#next ??= this.#following();
    return await this.#next.finally(() => this.#asked--);
  }

  async #following(): Promise<T> {
    await this.#current;
    this.#next = undefined;
    const running = this.#run();
    this.#current = running.catch(() => {});
    return await running;
  }
}
