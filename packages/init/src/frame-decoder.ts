import {
  type Frame,
  FrameType,
  headerBytes,
  magic,
  maxFrameBytes,
  maxPayloadBytes,
  trailerBytes,
  trailerOf,
  version,
} from "./frame.ts";

/** Bytes that no honest init sends. The stream is of no use after it. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** Their payloads are bytes of a stream, and mean the same in pieces. */
const streamed: ReadonlySet<number> = new Set([FrameType.stdout, FrameType.stderr, FrameType.data]);

/** Records before the nonce in HELLO_ACK: its tag and length. */
const nonceRecordHeaderBytes = 5;

/**
 * Turns a byte stream from init into frames.
 *
 *   seeking ──HELLO_ACK with our nonce──▶ synced ──malformed byte──▶ FrameError
 *
 * While seeking it throws away what an earlier attach left in the stream. A stream that begins with a frame has no nonce and
 * is synced from the start. Once synced it holds at most one frame, so a hostile peer cannot make it grow.
 *
 * Output and file data that come in pieces are passed on in pieces, each as a frame of its own: copying them together first
 * would cost more than all else the worker does with them. Their trailer is checked when it comes.
 */
export class FrameDecoder {
  readonly #nonce: Buffer;
  #synced: boolean;
  /** A frame of which only a part has come. Filled in place: a peer that sends single bytes must not cost a copy each. */
  readonly #partial = Buffer.alloc(maxFrameBytes);
  #held = 0;
  /** A streamed frame whose payload is coming: as much of it as is missing. */
  #open: { readonly header: Omit<Frame, "payload">; readonly length: number; left: number } | undefined;

  constructor(nonce?: Uint8Array) {
    this.#nonce = Buffer.from(nonce ?? []);
    this.#synced = nonce === undefined;
  }

  get synced(): boolean {
    return this.#synced;
  }

  /** Bytes held back until the rest of their frame comes. */
  get heldBytes(): number {
    return this.#held;
  }

  /** Payloads may be views into `chunk`. */
  push(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    let rest = this.#synced ? chunk : this.#seek(chunk);
    while (rest !== undefined && rest.length > 0) {
      if (this.#open !== undefined) rest = this.#takeOpen(this.#open, rest, onFrame);
      else if (this.#held > 0) rest = this.#completeHeld(rest, onFrame);
      else rest = this.#takeFrames(rest, onFrame);
    }
  }

  /** The frames at the start of a chunk; what is left is the middle of one. */
  #takeFrames(chunk: Buffer, onFrame: (frame: Frame) => void): Buffer | undefined {
    let offset = 0;
    while (chunk.length - offset >= headerBytes) {
      const size = this.#frameSize(chunk, offset);
      if (chunk.length - offset < size) {
        if (this.#begin(chunk, offset)) return chunk.subarray(offset + headerBytes);
        break;
      }
      const frame = this.#parse(chunk, offset, size);
      offset += size;
      onFrame(frame);
    }
    this.#hold(chunk.subarray(offset));
    return undefined;
  }

  /** True when its payload is passed on as it comes. */
  #begin(bytes: Buffer, offset: number): boolean {
    const length = bytes.readUInt32BE(offset + 16);
    if (length === 0 || !streamed.has(bytes.readUInt8(offset + 3))) return false;
    const header = this.#parseHeader(bytes, offset);
    this.#open = { header, length, left: length };
    return true;
  }

  #takeOpen(
    open: { header: Omit<Frame, "payload">; length: number; left: number },
    chunk: Buffer,
    onFrame: (frame: Frame) => void,
  ): Buffer | undefined {
    if (open.left > 0) {
      const payload = chunk.subarray(0, open.left);
      open.left -= payload.length;
      onFrame({ ...open.header, payload });
      return chunk.subarray(payload.length);
    }
    const trailer = chunk.subarray(0, trailerBytes - this.#held);
    this.#hold(trailer);
    if (this.#held < trailerBytes) return undefined;
    checkTrailer(this.#partial, 0, open.length);
    this.#held = 0;
    this.#open = undefined;
    return chunk.subarray(trailer.length);
  }

  #hold(bytes: Buffer): void {
    bytes.copy(this.#partial, this.#held);
    this.#held += bytes.length;
  }

  /** Returns the stream from the start of our HELLO_ACK, or keeps what may be the beginning of one. */
  #seek(chunk: Buffer): Buffer | undefined {
    const all = Buffer.concat([this.#partial.subarray(0, this.#held), chunk]);
    this.#held = 0;
    let from = 0;
    for (;;) {
      const at = all.indexOf(this.#nonce, from);
      if (at < 0) break;
      const start = at - nonceRecordHeaderBytes - headerBytes;
      if (start >= 0 && all.readUInt16BE(start) === magic && all[start + 3] === FrameType.helloAck) {
        this.#synced = true;
        return all.subarray(start);
      }
      from = at + 1;
    }
    const keep = headerBytes + nonceRecordHeaderBytes + this.#nonce.length;
    this.#hold(all.subarray(Math.max(0, all.length - keep)));
    return undefined;
  }

  /** Takes only what the held frame lacks; returns what follows it, or undefined while it is still partial. */
  #completeHeld(chunk: Buffer, onFrame: (frame: Frame) => void): Buffer | undefined {
    let rest = chunk;
    if (this.#held < headerBytes) {
      const take = Math.min(headerBytes - this.#held, rest.length);
      this.#hold(rest.subarray(0, take));
      rest = rest.subarray(take);
      if (this.#held < headerBytes) return undefined;
    }
    const size = this.#frameSize(this.#partial, 0);
    if (this.#held === headerBytes && this.#begin(this.#partial, 0)) {
      this.#held = 0;
      return rest;
    }
    const take = Math.min(size - this.#held, rest.length);
    this.#hold(rest.subarray(0, take));
    if (this.#held < size) return undefined;
    const frame = this.#parse(Buffer.from(this.#partial.subarray(0, size)), 0, size);
    this.#held = 0;
    onFrame(frame);
    return rest.subarray(take);
  }

  #frameSize(bytes: Buffer, offset: number): number {
    if (bytes.readUInt16BE(offset) !== magic)
      throw new FrameError("a frame does not begin with the magic number");
    if (bytes[offset + 2] !== version)
      throw new FrameError(`frame version ${bytes[offset + 2]}, expected ${version}`);
    const length = bytes.readUInt32BE(offset + 16);
    if (length > maxPayloadBytes)
      throw new FrameError(`a payload of ${length} bytes is over ${maxPayloadBytes}`);
    return headerBytes + length + trailerBytes;
  }

  #parse(bytes: Buffer, offset: number, size: number): Frame {
    const length = size - headerBytes - trailerBytes;
    checkTrailer(bytes, offset + headerBytes + length, length);
    const payload = bytes.subarray(offset + headerBytes, offset + headerBytes + length);
    return { ...this.#parseHeader(bytes, offset), payload };
  }

  #parseHeader(bytes: Buffer, offset: number): Omit<Frame, "payload"> {
    const epoch = bytes.readBigUInt64BE(offset + 8);
    if (epoch > BigInt(Number.MAX_SAFE_INTEGER)) throw new FrameError(`epoch ${epoch} is out of range`);
    return {
      type: bytes.readUInt8(offset + 3),
      channel: bytes.readUInt32BE(offset + 4),
      epoch: Number(epoch),
    };
  }
}

function checkTrailer(bytes: Buffer, offset: number, length: number): void {
  if (bytes.readUInt32BE(offset) !== trailerOf(length)) {
    throw new FrameError("a frame's trailer does not match its length");
  }
}
