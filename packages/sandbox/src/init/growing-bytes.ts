import { FrameError } from "@berth/init";

/** Collects bytes in one buffer that doubles: chunks of one byte cost no more than large ones. */
export class GrowingBytes {
  readonly #maxBytes: number;
  #buffer = Buffer.alloc(0);
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(bytes: Buffer): void {
    const length = this.#length + bytes.length;
    if (length > this.#maxBytes) throw new FrameError("more bytes than were asked for");
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(
        Math.min(this.#maxBytes, Math.max(length, this.#buffer.length * 2, 65_536)),
      );
      this.#buffer.copy(grown, 0, 0, this.#length);
      this.#buffer = grown;
    }
    bytes.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
