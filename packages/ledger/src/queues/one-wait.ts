/**
 * Waits for one thing at a time, until told to give up. A blocking call on a connection that is closed while it reconnects is never
 * settled by ioredis, so whoever closes must not wait for it.
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

  /** What waits ends with nothing, and so does whatever comes. */
  end(): void {
    this.#over = true;
    this.#giveUp?.();
  }
}
