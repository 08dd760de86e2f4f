import type { Socket } from "node:net";
import type { Writable } from "node:stream";
import { type Book, linkEnds } from "./pump.ts";

const blockBytes = 128 * 1024;
/** One block is being read into while the others wait to be written. */
const blocks = 6;

/**
 * Reads a socket into a few reused blocks. Node's own reading allocates 64 KiB per read, and garbage collection took a third of a
 * download's time. The socket must be made with `onread`.
 */
export class BlockReader {
  readonly #free: Buffer[] = [];
  #made = 0;
  #source: Socket | undefined;
  #sink: Writable | undefined;
  #book: Book | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Bytes that arrived before `pump` was called. */
  #early: Buffer[] = [];

  readonly onread = {
    buffer: (): Buffer => this.#next(),
    callback: (length: number, buffer: Uint8Array): boolean => this.#take(length, buffer as Buffer),
  };

  /** Like `pump`, for the socket that was made with `onread`. */
  pump(from: Socket, to: Writable, book: Book): void {
    this.#source = from;
    this.#sink = to;
    this.#book = book;
    for (const bytes of this.#early) to.write(bytes);
    this.#early = [];
    linkEnds(from, to);
    from.once("close", () => clearTimeout(this.#timer));
    this.#goOn();
  }

  /** A block is always free: reading pauses before the last one is taken. */
  #next(): Buffer {
    const free = this.#free.pop();
    if (free) return free;
    this.#made++;
    return Buffer.allocUnsafeSlow(blockBytes);
  }

  get #mayRead(): boolean {
    return this.#free.length + blocks - this.#made > 1 && this.#timer === undefined;
  }

  #take(length: number, block: Buffer): boolean {
    const bytes = block.subarray(0, length);
    if (!this.#sink || !this.#book) {
      this.#early.push(Buffer.from(bytes));
      this.#free.push(block);
      return false;
    }
    const waitMs = this.#book(length);
    if (waitMs === undefined) {
      this.#source?.destroy();
      this.#sink.destroy();
      return false;
    }
    if (waitMs >= 1) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#goOn();
      }, waitMs);
    }
    this.#sink.write(bytes, () => {
      this.#free.push(block);
      this.#goOn();
    });
    return this.#mayRead;
  }

  #goOn(): void {
    if (this.#mayRead && this.#source && !this.#source.destroyed) this.#source.resume();
  }
}
