/**
 * Bytes gathered from pieces. Each piece is copied: a client that sends a body one byte at a time would otherwise make this
 * process keep an object of a hundred bytes for each of them. Takes at most twice the room of the bytes.
 */
export class GatheredBytes {
  #room = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(length, this.#length * 2));
      this.#room.copy(room, 0, 0, this.#length);
      this.#room = room;
    }
    piece.copy(this.#room, this.#length);
    this.#length = length;
  }

  /** All bytes so far. Gathering begins anew. */
  take(): Buffer {
    const bytes = this.#room.subarray(0, this.#length);
    this.#room = Buffer.alloc(0);
    this.#length = 0;
    return bytes;
  }
}
