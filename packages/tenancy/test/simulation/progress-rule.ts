import type { OnBroken, RulesOptions } from "./violation.ts";

/** A tenancy whose loop is stuck asks for no renewal after so many leases: three, and the time to its next tick. */
const stuckLeases = 3.5;

/** Only a tenancy that makes progress renews its lease. */
export class ProgressRule {
  readonly #options: Pick<RulesOptions, "time" | "leaseMs">;
  readonly #onBroken: OnBroken;
  readonly #stuckSinceMs = new Map<string, number>();

  constructor(options: Pick<RulesOptions, "time" | "leaseMs">, onBroken: OnBroken) {
    this.#options = options;
    this.#onBroken = onBroken;
  }

  /** Its loop hangs from now on. */
  stuck(key: string, epoch: number): void {
    this.#stuckSinceMs.set(`${key} ${epoch}`, this.#options.time.nowMs);
  }

  asksToRenew(key: string, epoch: number): void {
    const { time, leaseMs } = this.#options;
    const forMs = time.nowMs - (this.#stuckSinceMs.get(`${key} ${epoch}`) ?? time.nowMs);
    if (forMs > leaseMs * stuckLeases)
      this.#onBroken(
        "only a tenancy that makes progress renews",
        `${key} epoch ${epoch}, stuck for ${forMs} ms`,
        [key],
      );
  }
}
