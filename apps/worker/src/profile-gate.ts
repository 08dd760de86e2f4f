import { unlessAborted } from "@berth/tenancy";

/**
 * Lets jobs of one profile into a sandbox side by side. A job of another profile waits until they are out. Jobs that come after it wait
 * behind it, under any profile: otherwise it would wait for as long as jobs of the present profile come.
 */
export class ProfileGate {
  #profile: string | undefined;
  #inside = 0;
  #empty = Promise.withResolvers<void>();
  #lastEntered = Promise.resolve();

  /** Calls `change` before the first job of another profile enters, when no job is inside. A job that has entered must leave. */
  async enter(profile: string, signal: AbortSignal, change: () => Promise<void>): Promise<void> {
    const before = this.#lastEntered;
    const entered = Promise.withResolvers<void>();
    this.#lastEntered = entered.promise;
    try {
      await unlessAborted(before, signal);
      while (this.#profile !== profile && this.#inside > 0) await unlessAborted(this.#empty.promise, signal);
      if (this.#profile !== profile) {
        const isFirst = this.#profile === undefined;
        this.#profile = profile;
        if (!isFirst) await change();
      }
      this.#inside++;
    } finally {
      // A job that gives up does not let those behind it pass the jobs before it.
      void before.then(entered.resolve);
    }
  }

  /** The profile of the job that entered last. */
  get profile(): string | undefined {
    return this.#profile;
  }

  leave(): void {
    this.#inside--;
    if (this.#inside > 0) return;
    this.#empty.resolve();
    this.#empty = Promise.withResolvers<void>();
  }
}
