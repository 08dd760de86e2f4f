import type { OutputStream } from "@berth/protocol";

const blockBytes = 65_536;

/**
 * Output that waits for its consumer. Neighbouring chunks of one stream become one, and a change of stream costs a
 * number: a tenant that writes single bytes to both streams in turn costs the worker about nine bytes for each.
 */
export class OutputQueue {
  readonly #blocks: Buffer[] = [];
  #firstUsed = 0;
  #lastFilled = 0;
  /** Lengths of the runs in order; positive for stdout, negative for stderr. */
  #runs: number[] = [];
  #nextRun = 0;

  get isEmpty(): boolean {
    return this.#nextRun === this.#runs.length;
  }

  push(stream: OutputStream, bytes: Buffer): void {
    const sign = stream === "stdout" ? 1 : -1;
    const last = this.#runs.length - 1;
    const lastRun = last >= this.#nextRun ? (this.#runs[last] ?? 0) : 0;
    if (lastRun * sign > 0) this.#runs[last] = lastRun + sign * bytes.length;
    else this.#runs.push(sign * bytes.length);
    for (let offset = 0; offset < bytes.length; ) {
      let block = this.#blocks.at(-1);
      if (block === undefined || this.#lastFilled === block.length) {
        block = Buffer.allocUnsafeSlow(blockBytes);
        this.#blocks.push(block);
        this.#lastFilled = 0;
      }
      const copied = bytes.copy(block, this.#lastFilled, offset);
      this.#lastFilled += copied;
      offset += copied;
    }
  }

  /** The next bytes of one stream, at most a block's worth. */
  shift(): { stream: OutputStream; bytes: Buffer } | undefined {
    const run = this.#runs[this.#nextRun];
    const block = this.#blocks[0];
    if (run === undefined || block === undefined) return undefined;
    const end = Math.min(block.length, this.#firstUsed + Math.abs(run));
    const bytes = block.subarray(this.#firstUsed, end);
    this.#firstUsed = end;
    const left = Math.abs(run) - bytes.length;
    this.#runs[this.#nextRun] = Math.sign(run) * left;
    if (left === 0) this.#nextRun++;
    if (end === block.length || this.isEmpty) {
      this.#blocks.shift();
      this.#firstUsed = 0;
      if (this.#blocks.length === 0) this.#lastFilled = 0;
    }
    if (this.isEmpty || this.#nextRun > 65_536) {
      this.#runs = this.#runs.slice(this.#nextRun);
      this.#nextRun = 0;
    }
    return { stream: run > 0 ? "stdout" : "stderr", bytes };
  }
}
