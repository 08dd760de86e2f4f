/**
 * Waits for one thing at a time, until it is stopped. A blocking call on a connection that is closed while it reconnects is never
 * settled by ioredis, so the closing code must not wait for it.
 */
export class OneWait {
  #giveUp: (() => void) | undefined;
  #over = false;

  for<T>(waited: () => Promise<T | undefined>): Promise<T | undefined> {
    if (this.#over) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#giveUp = () => resolve(undefined);
      waited().then(resolve, reject);
    });
  }

  /** Ends the current wait, and every later one, with nothing. */
  end(): void {
    this.#over = true;
    this.#giveUp?.();
  }
}
