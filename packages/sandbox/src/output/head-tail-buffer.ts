import type { KeptOutput, OutputChunk, OutputStream, SandboxProfile } from "@berth/protocol";

/** Small chunks of one stream share a block of this size. */
const blockBytes = 16_384;
const maxSpare = 8;
/** Charged for each change of stream: else single bytes that alternate between the two would take 200 times the limit in memory. */
const switchCost = 128;

/**
 * Keeps the first and the last half of `limitBytes` of a command's output, or with `start` the first `limitBytes`, in order
 * of arrival, and counts what it drops. Its memory is bounded by the limit however small the chunks are. It copies what it keeps.
 */
export class HeadTailBuffer {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #keeps: SandboxProfile["keptOutput"];
  readonly #head = new ChunkRun();
  readonly #tail = new ChunkRun();
  #headFull = false;
  #totalBytes = 0;

  constructor(limitBytes: number, keeps: SandboxProfile["keptOutput"] = "ends") {
    this.#keeps = keeps;
    this.#tailLimit = keeps === "start" ? 0 : Math.floor(limitBytes / 2);
    this.#headLimit = limitBytes - this.#tailLimit;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  add(stream: OutputStream, bytes: Buffer): void {
    this.#totalBytes += bytes.length;
    let rest = bytes;
    if (!this.#headFull) {
      const room = Math.max(0, this.#headLimit - this.#head.cost);
      const take = rest.subarray(0, room);
      if (take.length > 0) this.#head.append(stream, take);
      rest = rest.subarray(take.length);
      this.#headFull = this.#head.cost >= this.#headLimit;
    }
    if (rest.length === 0) return;
    if (rest.length > this.#tailLimit) rest = rest.subarray(rest.length - this.#tailLimit);
    this.#tail.append(stream, rest);
    this.#tail.trimTo(this.#tailLimit);
  }

  /** Bytes of all buffers that this object keeps alive. */
  get heldBytes(): number {
    const buffers = new Set([...this.#head.buffers(), ...this.#tail.buffers()]);
    return [...buffers].reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  finish(): KeptOutput {
    return {
      head: this.#head.chunks(),
      tail: this.#tail.chunks(),
      cutBytes: this.#totalBytes - this.#head.bytes - this.#tail.bytes,
      totalBytes: this.#totalBytes,
      ...(this.#keeps === "start" ? { shows: "start" as const } : {}),
    };
  }
}

const dropped: OutputChunk = { stream: "stdout", bytes: Buffer.alloc(0) };

/** Chunks in order; appends to the last one while it is small and of the same stream. */
class ChunkRun {
  #chunks: OutputChunk[] = [];
  #start = 0;
  #block: Buffer = Buffer.alloc(0);
  /** Blocks of dropped output, to be used again: a long output then allocates no more. */
  readonly #spare: Buffer[] = [];
  #filled = 0;
  #shrunk = 0;
  bytes = 0;
  #switches = 0;

  get cost(): number {
    return this.bytes + this.#switches * switchCost;
  }

  append(stream: OutputStream, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += blockBytes)
      this.#appendPiece(stream, bytes.subarray(at, at + blockBytes));
  }

  #appendPiece(stream: OutputStream, bytes: Buffer): void {
    this.bytes += bytes.length;
    const last = this.#chunks.at(-1);
    if (last?.stream === stream && this.#filled + bytes.length <= this.#block.length) {
      bytes.copy(this.#block, this.#filled);
      this.#filled += bytes.length;
      this.#chunks[this.#chunks.length - 1] = {
        stream,
        bytes: this.#block.subarray(this.#shrunk, this.#filled),
      };
      return;
    }
    if (last !== undefined && last.stream !== stream) this.#switches++;
    this.#shrunk = 0;
    // A block of its own size for what follows a change of stream: most of those are short.
    const size = last?.stream === stream ? blockBytes : Math.max(256, bytes.length);
    this.#block = (size === blockBytes && this.#spare.pop()) || Buffer.allocUnsafeSlow(size);
    bytes.copy(this.#block);
    this.#filled = bytes.length;
    this.#chunks.push({ stream, bytes: this.#block.subarray(0, this.#filled) });
  }

  trimTo(limit: number): void {
    while (this.cost > limit) {
      const first = this.#chunks[this.#start];
      if (!first) break;
      const surplus = this.cost - limit;
      if (first.bytes.length <= surplus && this.#start < this.#chunks.length - 1) {
        // Replaced, not only skipped: a thousand blocks of 64 KiB would stay alive until the array is cut.
        this.#chunks[this.#start++] = dropped;
        this.#keepSpare(first.bytes);
        this.bytes -= first.bytes.length;
        if (this.#chunks[this.#start]?.stream !== first.stream) this.#switches--;
      } else {
        const drop = Math.min(surplus, first.bytes.length);
        this.#chunks[this.#start] = { stream: first.stream, bytes: first.bytes.subarray(drop) };
        if (this.#start === this.#chunks.length - 1) this.#shrunk += drop;
        this.bytes -= drop;
        if (drop < surplus) break;
      }
    }
    if (this.#start > 1024) {
      this.#chunks = this.#chunks.slice(this.#start);
      this.#start = 0;
    }
  }

  /** Keeps only whole blocks. The current block is never dropped. */
  #keepSpare({ buffer }: Uint8Array): void {
    if (buffer.byteLength === blockBytes && this.#spare.length < maxSpare)
      this.#spare.push(Buffer.from(buffer));
  }

  /** The buffers behind all slots, including those before the first chunk. */
  buffers(): ArrayBufferLike[] {
    return [this.#block, ...this.#spare, ...this.#chunks.map(({ bytes }) => bytes)].map(
      ({ buffer }) => buffer,
    );
  }

  chunks(): OutputChunk[] {
    return this.#chunks.slice(this.#start);
  }
}
