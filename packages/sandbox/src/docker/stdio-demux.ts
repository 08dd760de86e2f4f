import { FrameError } from "@berth/init";

const headerBytes = 8;

/**
 * Demultiplexes the engine's stdout and stderr (one byte for the stream, three zeros, a length, the bytes). Passes bytes on as they come,
 * and holds at most a header.
 */
export class StdioDemux {
  readonly #onChunk: (stream: "stdout" | "stderr", bytes: Buffer) => void;
  readonly #header = Buffer.alloc(headerBytes);
  #headerHeld = 0;
  #stream: "stdout" | "stderr" = "stdout";
  #left = 0;

  constructor(onChunk: (stream: "stdout" | "stderr", bytes: Buffer) => void) {
    this.#onChunk = onChunk;
  }

  push(chunk: Buffer): void {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#left === 0) {
        offset += this.#takeHeader(chunk, offset);
        continue;
      }
      const bytes = chunk.subarray(offset, offset + this.#left);
      this.#left -= bytes.length;
      offset += bytes.length;
      this.#onChunk(this.#stream, bytes);
    }
  }

  #takeHeader(chunk: Buffer, offset: number): number {
    const taken = chunk.copy(this.#header, this.#headerHeld, offset, offset + headerBytes - this.#headerHeld);
    this.#headerHeld += taken;
    if (this.#headerHeld < headerBytes) return taken;
    this.#headerHeld = 0;
    const type = this.#header[0] ?? 0;
    if (type > 2 || this.#header.readUIntBE(1, 3) !== 0)
      throw new FrameError("not the engine's multiplexed output");
    this.#stream = type === 2 ? "stderr" : "stdout";
    this.#left = this.#header.readUInt32BE(4);
    return taken;
  }
}
