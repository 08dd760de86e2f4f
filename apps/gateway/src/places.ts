import { Problem, type ProblemCode } from "./http/problem.ts";
import type { Principal } from "./keys/principal.ts";

export interface PlacesOptions {
  readonly max: number;
  readonly maxPerKey: number;
  readonly code: ProblemCode;
  /** What is counted, for the sentence that refuses one too many. */
  readonly what: string;
}

/** Things that stay open for a while, so many at once and so many for each key: nobody's patience uses up everybody's. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #perKey = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes some, or refuses. Given back once, however often it is said. */
  take({ id }: Principal, count = 1): Disposable {
    const { max, maxPerKey, code, what } = this.#options;
    const ofKey = this.#perKey.get(id) ?? 0;
    if (ofKey + count > maxPerKey)
      throw new Problem(code, `this key may have ${maxPerKey} ${what}`, retryAfter);
    if (this.#taken + count > max)
      throw new Problem(code, `this gateway may have ${max} ${what}`, retryAfter);
    this.#change(id, count);
    let given = false;
    return {
      [Symbol.dispose]: () => {
        if (!given) this.#change(id, -count);
        given = true;
      },
    };
  }

  #change(id: string, by: number): void {
    this.#taken += by;
    const ofKey = (this.#perKey.get(id) ?? 0) + by;
    if (ofKey > 0) this.#perKey.set(id, ofKey);
    else this.#perKey.delete(id);
  }
}

const retryAfter = { headers: { "retry-after": "5" } };
