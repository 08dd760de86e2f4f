const newline = 0x0a;

/**
 * Some lines of a file whose bytes come in pieces. Holds the bytes of the lines asked for and no others, at most `maxBytes`
 * of them: past that it ends with the last line that fits whole.
 */
export class LineWindow {
  readonly first: number;
  readonly #count: number;
  readonly #maxBytes: number;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  /** The part of `keptBytes` that is whole lines. */
  #wholeBytes = 0;
  #wholeLines = 0;
  /** The line the next byte belongs to, counted from 1. */
  #line = 1;
  #seenBytes = 0;
  #full = false;
  #more = false;

  constructor(first: number, count: number, maxBytes: number) {
    this.first = first;
    this.#count = count;
    this.#maxBytes = maxBytes;
  }

  /** Whether all lines asked for are here; bytes after them only make `more` true. */
  get full(): boolean {
    return this.#full;
  }

  /** Whether the file is known to go on after what is kept. */
  get more(): boolean {
    return this.#more;
  }

  get seenBytes(): number {
    return this.#seenBytes;
  }

  /** The line that alone is longer than may be kept, if that is why nothing is. */
  get tooLongLine(): number | undefined {
    return this.#full && this.#wholeLines === 0 ? this.first : undefined;
  }

  add(bytes: Uint8Array): void {
    this.#seenBytes += bytes.length;
    let at = 0;
    while (at < bytes.length && !this.#full && this.#line < this.first) {
      const end = bytes.indexOf(newline, at);
      if (end < 0) return;
      this.#line++;
      at = end + 1;
    }
    const start = at;
    while (at < bytes.length && !this.#full) {
      const end = bytes.indexOf(newline, at);
      const next = end < 0 ? bytes.length : end + 1;
      if (this.#keptBytes + next - start > this.#maxBytes) {
        this.#full = true;
        break;
      }
      at = next;
      if (end >= 0) this.#lineEnds(this.#keptBytes + at - start);
    }
    if (at > start) {
      // A copy: the piece may be part of a buffer that is used again.
      this.#kept.push(Buffer.from(bytes.subarray(start, at)));
      this.#keptBytes += at - start;
    }
    if (this.#full && at < bytes.length) this.#more = true;
  }

  /** Call it once, when no more bytes come or none are wanted. */
  finish({ atEnd }: { readonly atEnd: boolean }): Buffer {
    if (atEnd && !this.#full && this.#keptBytes > this.#wholeBytes) this.#lineEnds(this.#keptBytes);
    if (!atEnd) this.#more = true;
    return Buffer.concat(this.#kept).subarray(0, this.#wholeBytes);
  }

  /** The last line kept; the one before `first` when there is none. */
  get last(): number {
    return this.first + this.#wholeLines - 1;
  }

  #lineEnds(keptBytes: number): void {
    this.#wholeBytes = keptBytes;
    this.#wholeLines++;
    this.#line++;
    if (this.#wholeLines === this.#count) this.#full = true;
  }
}
