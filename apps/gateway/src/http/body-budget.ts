import { Problem } from "./problem.ts";

/** One key's part of the whole: a quarter, so that one that fills its own leaves room for others. */
const shareOfOne = 4;

/** Bytes of request bodies in memory at once, of all requests and of each key. */
export class BodyBudget {
  readonly #max: number;
  readonly #perKey = new Map<string, number>();
  #used = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** One request's part. */
  hold(key: string): { readonly take: (bytes: number) => void; readonly giveBack: () => void } {
    let taken = 0;
    return {
      take: (bytes) => {
        this.#take(key, bytes);
        taken += bytes;
      },
      giveBack: () => {
        if (taken > 0) this.#giveBack(key, taken);
        taken = 0;
      },
    };
  }

  /** Counts more bytes of a key's, or refuses them. */
  #take(key: string, bytes: number): void {
    const ofKey = (this.#perKey.get(key) ?? 0) + bytes;
    if (this.#used + bytes > this.#max || ofKey > this.#max / shareOfOne) {
      throw new Problem("too-many-requests", "too many bytes of requests are in memory", {
        headers: { "retry-after": "1" },
      });
    }
    this.#used += bytes;
    this.#perKey.set(key, ofKey);
  }

  #giveBack(key: string, bytes: number): void {
    this.#used -= bytes;
    const ofKey = (this.#perKey.get(key) ?? 0) - bytes;
    if (ofKey > 0) this.#perKey.set(key, ofKey);
    else this.#perKey.delete(key);
  }
}
