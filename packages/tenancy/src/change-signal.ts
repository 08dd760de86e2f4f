import type { Clock } from "./tenancy-ports.ts";

/** Wakes a loop that waits until something has changed. */
export class ChangeSignal {
  readonly #clock: Clock;
  #changed = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  /** Waits for the next change, at most `mostMs`, or for the signal. Leaves no listener on a long-lived signal. */
  async wait(mostMs: number, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const end = () => over.abort();
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await Promise.race([this.#changed.promise, this.#clock.sleep(mostMs, over.signal).catch(() => {})]);
    signal.removeEventListener("abort", end);
    end();
  }
}
