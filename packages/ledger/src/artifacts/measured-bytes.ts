import { createHash } from "node:crypto";

/** Thrown when more bytes come than are allowed. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** Counts and hashes what passes through, and stops at the first byte too many. */
export class MeasuredBytes {
  readonly #most: number;
  readonly #hash = createHash("sha256");
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  async *through(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of source) {
      this.#size += chunk.length;
      if (this.#size > this.#most) throw new TooLarge();
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** The hash of everything that passed. Call it once, at the end. */
  sha256(): string {
    return this.#hash.digest("hex");
  }
}
