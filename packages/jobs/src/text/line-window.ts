const newline = 0x0a;

/**
 * Selects lines of a file that arrives in chunks. Keeps only the bytes of the selected lines, at most `maxBytes`; beyond that it ends
 * with the last line that fits whole.
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
  /** The line of the next byte, counted from 1. */
  #line = 1;
  #seenBytes = 0;
  #full = false;
  #more = false;

  constructor(first: number, count: number, maxBytes: number) {
    this.first = first;
    this.#count = count;
    this.#maxBytes = maxBytes;
  }

  /** Whether all selected lines are complete; bytes after them only make `more` true. */
  get full(): boolean {
    return this.#full;
  }

  /** Whether the file continues after the kept part. */
  get more(): boolean {
    return this.#more;
  }

  get seenBytes(): number {
    return this.#seenBytes;
  }

  /** The line that alone exceeds the limit, if that is why nothing was kept. */
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
      // Copy: the chunk may be part of a reused buffer.
      this.#kept.push(Buffer.from(bytes.subarray(start, at)));
      this.#keptBytes += at - start;
    }
    if (this.#full && at < bytes.length) this.#more = true;
  }

  /** Call once, when no more bytes come or are wanted. */
  finish({ atEnd }: { readonly atEnd: boolean }): Buffer {
    if (atEnd && !this.#full && this.#keptBytes > this.#wholeBytes) this.#lineEnds(this.#keptBytes);
    if (!atEnd) this.#more = true;
    return Buffer.concat(this.#kept).subarray(0, this.#wholeBytes);
  }

  /** The last line kept; the one before `first` if there is none. */
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
