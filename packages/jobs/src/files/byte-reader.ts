/** Takes bytes from a source in the portions the reader wants, holding one piece of the source at a time. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #piece: Buffer = Buffer.alloc(0);
  #position = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  get position(): number {
    return this.#position;
  }

  /** As many bytes as asked for, or fewer at the end. */
  async take(count: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let left = count;
    while (left > 0) {
      const part = await this.#some(left);
      if (part === undefined) break;
      parts.push(part);
      left -= part.length;
    }
    const [only] = parts;
    return parts.length === 1 && only ? only : Buffer.concat(parts);
  }

  /** The next bytes as they come; throws what `cutShort` makes when the source ends before. */
  async *stream(count: number, cutShort: () => Error): AsyncGenerator<Uint8Array, void, void> {
    let left = count;
    while (left > 0) {
      const part = await this.#some(left);
      if (part === undefined) throw cutShort();
      left -= part.length;
      yield part;
    }
  }

  /** False when the source ends before. */
  async skip(count: number): Promise<boolean> {
    let left = count;
    while (left > 0) {
      const part = await this.#some(left);
      if (part === undefined) return false;
      left -= part.length;
    }
    return true;
  }

  /** Lets go of the source. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #some(atMost: number): Promise<Buffer | undefined> {
    while (this.#piece.length === 0) {
      const next = await this.#source.next();
      if (next.done) return undefined;
      this.#piece = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.length);
    }
    const part = this.#piece.subarray(0, atMost);
    this.#piece = this.#piece.subarray(part.length);
    this.#position += part.length;
    return part;
  }
}
