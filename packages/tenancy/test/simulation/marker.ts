import type { SimProcess } from "./sim-process.ts";

/** What BullMQ's workers block on: it wakes one waiter. A waiter that times out looks at the queue as well. */
export class Marker {
  #set = false;
  readonly #waiting: (() => void)[] = [];

  set(): void {
    const first = this.#waiting.shift();
    if (first) first();
    else this.#set = true;
  }

  /** Settles when it is set, or after `ms`. */
  wait(process: SimProcess, ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#set) {
        this.#set = false;
        process.after(1, "io", resolve);
        return;
      }
      const taken = () => {
        forget();
        process.after(1, "io", resolve);
      };
      const forget = process.after(ms, "timer", () => {
        const index = this.#waiting.indexOf(taken);
        if (index >= 0) this.#waiting.splice(index, 1);
        resolve();
      });
      this.#waiting.push(taken);
    });
  }
}
