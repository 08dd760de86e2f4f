import type { TurnsPort } from "../../src/tenancy-ports.ts";

/** At most so many at once; first come, first served. */
export class SimTurns implements TurnsPort {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#wait(signal);
    return this.#turn();
  }

  takeNow(): (() => void) | undefined {
    if (this.#free === 0) return undefined;
    this.#free--;
    return this.#turn();
  }

  #turn(): () => void {
    return () => {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const taken = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(taken), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(taken);
    });
  }
}
