const seconds = 10;

/** A rate per second: over the last ten seconds, or since the first event if that is shorter. */
export class PerSecond {
  readonly #now: () => number;
  readonly #counts = new Array<number>(seconds).fill(0);
  #first: number | undefined;
  #second = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  add(): void {
    this.#first ??= this.#now();
    this.#turn();
    const slot = this.#second % seconds;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
  }

  get rate(): number {
    if (this.#first === undefined) return 0;
    this.#turn();
    const counted = this.#counts.reduce((sum, count) => sum + count, 0);
    const ms = Math.min(this.#now() - this.#first, seconds * 1_000);
    // At least one second: otherwise the first few events would make a rate of thousands.
    return counted / (Math.max(ms, 1_000) / 1_000);
  }

  /** Clears the slots of the seconds that passed. */
  #turn(): void {
    const second = Math.floor(this.#now() / 1_000);
    const from = Math.max(this.#second + 1, second - seconds + 1);
    for (let passed = from; passed <= second; passed++) this.#counts[passed % seconds] = 0;
    this.#second = second;
  }
}
