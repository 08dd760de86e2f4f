import type { KeptOutput, OutputChunk, OutputStream } from "@berth/protocol";

/** Keeps the beginning and the end of a job's output, so that a call's memory is bounded for any output. */
export class GatheredOutput {
  readonly #half: number;
  readonly #head: OutputChunk[] = [];
  #tail: OutputChunk[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #cutBytes = 0;

  constructor(maxBytes: number) {
    this.#half = Math.floor(maxBytes / 2);
  }

  add(stream: OutputStream, bytes: Uint8Array): void {
    const room = this.#half - this.#headBytes;
    const first = bytes.subarray(0, Math.max(0, room));
    if (first.length > 0) {
      this.#head.push({ stream, bytes: first });
      this.#headBytes += first.length;
    }
    const rest = bytes.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push({ stream, bytes: rest });
    this.#tailBytes += rest.length;
    this.#trim();
  }

  get kept(): KeptOutput {
    const totalBytes = this.#headBytes + this.#tailBytes + this.#cutBytes;
    return { head: this.#head, tail: this.#tail, cutBytes: this.#cutBytes, totalBytes };
  }

  #trim(): void {
    while (this.#tailBytes > this.#half) {
      const [first] = this.#tail;
      if (!first) return;
      const excess = Math.min(this.#tailBytes - this.#half, first.bytes.length);
      const left = first.bytes.subarray(excess);
      this.#tail =
        left.length > 0 ? [{ ...first, bytes: left }, ...this.#tail.slice(1)] : this.#tail.slice(1);
      this.#tailBytes -= excess;
      this.#cutBytes += excess;
    }
  }
}
