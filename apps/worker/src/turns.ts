import type { TurnsPort } from "@berth/tenancy";

/** At most so many jobs run in this worker at once, whoever's they are; first come, first served. */
export class Turns implements TurnsPort {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#taken >= this.#most) await this.#wait(signal);
    else this.#taken++;
    return this.#turn();
  }

  takeNow(): (() => void) | undefined {
    if (this.#taken >= this.#most) return undefined;
    this.#taken++;
    return this.#turn();
  }

  #turn(): () => void {
    let over = false;
    return () => {
      if (over) return;
      over = true;
      // Handed on rather than given back: nobody who comes now gets before those who wait.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#taken--;
    };
  }

  #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onTurn = () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const onAbort = () => {
      this.#waiting.splice(this.#waiting.indexOf(onTurn), 1);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(onTurn);
    return promise;
  }
}
