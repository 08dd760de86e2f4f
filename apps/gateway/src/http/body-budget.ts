import { Problem } from "./problem.ts";

/** One key's part of the whole: a quarter, so that one that fills its own leaves room for others. */
const shareOfOne = 4;

/** What one request's body takes of the budget. */
export interface BodyHold {
  /** Counts bytes; throws when there is no room for them. */
  readonly take: (bytes: number) => void;
  /** Of a body that is carried out line by line: these are no longer in memory. */
  readonly giveBack: (bytes: number) => void;
  /** Gives back all that is left, once. */
  readonly end: () => void;
}

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
  hold(key: string): BodyHold {
    let taken = 0;
    let ended = false;
    const giveBack = (bytes: number) => {
      const most = Math.min(bytes, taken);
      if (most > 0) this.#giveBack(key, most);
      taken -= most;
    };
    return {
      take: (bytes) => {
        // The request is over: nothing would give these bytes back.
        if (ended) return;
        this.#take(key, bytes);
        taken += bytes;
      },
      giveBack,
      end: () => {
        ended = true;
        giveBack(taken);
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
