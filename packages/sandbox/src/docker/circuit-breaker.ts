import { Fault } from "@berth/protocol";

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** First pause; doubles with each failed probe. */
  readonly pauseMs: number;
  readonly maxPauseMs: number;
  /** Monotonic. */
  readonly now: () => number;
}

/**
 * Keeps calls from queueing behind an engine that does not answer.
 *
 *   closed ──N failures in a row──▶ open ──pause over──▶ probing ──success──▶ closed
 *                                     ▲                     │
 *                                     └──failure, pause ×2──┘
 *
 * Only unanswered calls count as failures: an engine that refuses is a healthy one. While probing, one call goes
 * through and the others fail at once.
 */
export class CircuitBreaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #openUntil = 0;
  #pauseMs: number;
  #probing = false;

  constructor(options: BreakerOptions) {
    this.#options = options;
    this.#pauseMs = options.pauseMs;
  }

  get isOpen(): boolean {
    return this.#failures >= this.#options.failures;
  }

  /** Throws `engine-wedged` when the call should not be made. */
  enter(): void {
    if (!this.isOpen) return;
    const retryInMs = Math.ceil(this.#openUntil - this.#options.now());
    if (retryInMs > 0 || this.#probing) {
      throw new Fault("engine-wedged", { failures: this.#failures, retryInMs: Math.max(0, retryInMs) });
    }
    this.#probing = true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#probing = false;
    this.#pauseMs = this.#options.pauseMs;
  }

  failed(): void {
    this.#failures++;
    if (!this.isOpen) return;
    if (this.#probing) this.#pauseMs = Math.min(this.#pauseMs * 2, this.#options.maxPauseMs);
    this.#probing = false;
    this.#openUntil = this.#options.now() + this.#pauseMs;
  }

  /** The caller gave up before the engine answered. */
  abandoned(): void {
    this.#probing = false;
  }
}
