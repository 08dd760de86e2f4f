import { counted, spanText } from "../terminal/quantities.ts";

export interface StopLimits {
  /** The batch stops after this many failures. */
  readonly maxFailures: number | undefined;
  readonly timeoutMs: number | undefined;
}

/** Why a batch was stopped before all its jobs ended. */
export interface Stopped {
  readonly why: "failures" | "timeout";
  readonly text: string;
}

/** Decides whether a batch stops early, and calls `onStop` at most once. */
export class StopRule {
  readonly #limits: StopLimits;
  readonly #onStop: () => void;
  readonly #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #stopped: Stopped | undefined;

  constructor(limits: StopLimits, onStop: () => void) {
    this.#limits = limits;
    this.#onStop = onStop;
    const { timeoutMs } = limits;
    if (timeoutMs === undefined) return;
    const text = `its time was over (--timeout ${spanText(timeoutMs)})`;
    // A longer time overflows Node's timer, and means "no limit" in practice.
    this.#timer = setTimeout(() => this.#stop({ why: "timeout", text }), Math.min(timeoutMs, 2 ** 31 - 1));
  }

  get stopped(): Stopped | undefined {
    return this.#stopped;
  }

  failed(): void {
    const { maxFailures } = this.#limits;
    if (++this.#failures !== maxFailures) return;
    const text = `${counted(maxFailures, "job")} had failed (--max-failures ${maxFailures})`;
    this.#stop({ why: "failures", text });
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #stop(stopped: Stopped): void {
    if (this.#stopped) return;
    this.#stopped = stopped;
    clearTimeout(this.#timer);
    this.#onStop();
  }
}
