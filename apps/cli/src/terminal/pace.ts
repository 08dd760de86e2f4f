/** Time constant of the rate: recent ends count most, older ones fade. */
const rateFadeMs = 15_000;
/** Time constant of the estimate: ends come in bursts, and the estimate should not jump with each. */
const estimateFadeMs = 4_000;
const sampleMs = 200;
/** No estimate before this much time: too few samples. */
const firstEstimateMs = 2_000;

export interface PaceNow {
  /** 0 until the first end. */
  readonly perSecond: number;
  /** Time left; undefined until it can be estimated. */
  readonly leftMs: number | undefined;
}

/** Estimates the rate and the time left: steady numbers from uneven progress. */
export class Pace {
  #beganMs: number | undefined;
  #sampledMs = 0;
  #sampledDone = 0;
  #fading = 0;
  #weight = 0;
  #overAtMs: number | undefined;

  at(nowMs: number, done: number, total: number | undefined): PaceNow {
    if (this.#beganMs === undefined) {
      this.#beganMs = nowMs;
      this.#sampledMs = nowMs;
      this.#sampledDone = done;
    }
    if (nowMs - this.#sampledMs >= sampleMs) this.#sample(nowMs, done, total);
    const left = this.#overAtMs === undefined ? undefined : Math.max(0, this.#overAtMs - nowMs);
    return { perSecond: this.#perMs * 1_000, leftMs: done === total ? undefined : left };
  }

  get #perMs(): number {
    return this.#weight === 0 ? 0 : this.#fading / this.#weight;
  }

  #sample(nowMs: number, done: number, total: number | undefined): void {
    const ms = nowMs - this.#sampledMs;
    const kept = Math.exp(-ms / rateFadeMs);
    // Dividing by the weight of all samples keeps a young average from being drawn towards zero.
    this.#fading = this.#fading * kept + (1 - kept) * ((done - this.#sampledDone) / ms);
    this.#weight = this.#weight * kept + (1 - kept);
    this.#sampledMs = nowMs;
    this.#sampledDone = done;
    const ageMs = nowMs - (this.#beganMs ?? nowMs);
    if (total === undefined || this.#perMs === 0 || ageMs < firstEstimateMs) return;
    const overAtMs = nowMs + (total - done) / this.#perMs;
    const follow = 1 - Math.exp(-ms / estimateFadeMs);
    this.#overAtMs =
      this.#overAtMs === undefined ? overAtMs : this.#overAtMs + (overAtMs - this.#overAtMs) * follow;
  }
}
