import { capOf } from "@berth/protocol";

const hourMs = 3_600_000;

export interface EgressCeilings {
  readonly egressConnections: number;
  /** 0: no cap. */
  readonly egressBytesPerHour: number;
  /** 0: no cap. */
  readonly egressBytesPerSecond: number;
}

/** Tracks how much of its ceilings a sandbox has used. It outlives containers, so a fresh one gains nothing. */
export class Allowance {
  readonly #now: () => number;
  #ceilings: EgressCeilings;
  #hour = 0;
  #inHour = 0;
  /** When the bytes so far would have passed at the allowed rate. */
  #paidUntilMs = 0;
  #open = 0;

  constructor(ceilings: EgressCeilings, now: () => number = () => performance.now()) {
    this.#ceilings = ceilings;
    this.#now = now;
  }

  replace(ceilings: EgressCeilings): void {
    this.#ceilings = ceilings;
  }

  /** Undefined: too many are open. Otherwise call the result once when the connection closes. */
  enter(): (() => void) | undefined {
    if (this.#open >= this.#ceilings.egressConnections) return undefined;
    this.#open++;
    return () => {
      this.#open--;
    };
  }

  get hourIsUsed(): boolean {
    this.#turnHour();
    return this.#inHour >= capOf(this.#ceilings.egressBytesPerHour);
  }

  /** Counts bytes that pass. Returns how long to wait before the next ones. */
  book(bytes: number): number {
    this.#turnHour();
    this.#inHour += bytes;
    const rate = this.#ceilings.egressBytesPerSecond;
    if (rate === 0) return 0;
    const now = this.#now();
    this.#paidUntilMs = Math.max(this.#paidUntilMs, now) + (bytes * 1000) / rate;
    return this.#paidUntilMs - now;
  }

  #turnHour(): void {
    const hour = Math.floor(this.#now() / hourMs);
    if (hour !== this.#hour) this.#inHour = 0;
    this.#hour = hour;
  }
}
