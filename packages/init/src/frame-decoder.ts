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

/** Records before the nonce in HELLO_ACK: its tag and length. */
const nonceRecordHeaderBytes = 5;

/**
 * Turns a byte stream from init into frames.
 *
 *   seeking ──HELLO_ACK with our nonce──▶ synced ──malformed byte──▶ FrameError
 *
 * While seeking it throws away what an earlier attach left in the stream. A stream that begins with a frame has no nonce and
 * is synced from the start. Once synced it holds at most one frame, so a hostile peer cannot make it grow.
 */
export class FrameDecoder {
  readonly #nonce: Buffer;
  #synced: boolean;
  /** A frame of which only a part has come. Filled in place: a peer that sends single bytes must not cost a copy each. */
  readonly #partial = Buffer.alloc(maxFrameBytes);
  #held = 0;

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
    let rest = chunk;
    if (!this.#synced) {
      const found = this.#seek(rest);
      if (!found) return;
      rest = found;
    }
    if (this.#held > 0) {
      const following = this.#completeHeld(rest, onFrame);
      if (!following) return;
      rest = following;
    }
    let offset = 0;
    while (rest.length - offset >= headerBytes) {
      const size = this.#frameSize(rest, offset);
      if (rest.length - offset < size) break;
      onFrame(this.#parse(rest, offset, size));
      offset += size;
    }
    this.#hold(rest.subarray(offset));
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
    if (bytes.readUInt32BE(offset + headerBytes + length) !== trailerOf(length)) {
      throw new FrameError("a frame's trailer does not match its length");
    }
    const epoch = bytes.readBigUInt64BE(offset + 8);
    if (epoch > BigInt(Number.MAX_SAFE_INTEGER)) throw new FrameError(`epoch ${epoch} is out of range`);
    return {
      type: bytes.readUInt8(offset + 3),
      channel: bytes.readUInt32BE(offset + 4),
      epoch: Number(epoch),
      payload: bytes.subarray(offset + headerBytes, offset + headerBytes + length),
    };
  }
}
