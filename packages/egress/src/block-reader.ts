import type { Socket } from "node:net";
import type { Writable } from "node:stream";
import { type Book, linkEnds } from "./pump.ts";

const blockBytes = 128 * 1024;
/** One block is being read into while the others wait to be written. */
const blocks = 6;

export interface PumpOptions {
  /** What was read of it before. */
  readonly first?: Buffer;
  /** So many bytes are passed on. Absent: all up to the end. */
  readonly length?: number;
}

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
  /** Of what is passed on; how much is missing. */
  #left = Number.POSITIVE_INFINITY;
  #taker: ((bytes: Buffer) => boolean) | undefined;
  /** Bytes that arrived before `take` or `pump` was called. */
  #early: Buffer[] = [];

  readonly onread = {
    buffer: (): Buffer => this.#next(),
    callback: (length: number, buffer: Uint8Array): boolean => this.#take(length, buffer as Buffer),
  };

  /** Gives each piece to `taker`, as a copy. It reads on as long as that returns true, and after `resume`. */
  take(from: Socket, taker: (bytes: Buffer) => boolean): void {
    this.#source = from;
    this.#taker = taker;
    const early = this.#early;
    this.#early = [];
    if (early.every((bytes) => taker(bytes))) this.resume();
  }

  resume(): void {
    this.#goOn();
  }

  /** Like `pump`, for the socket that was made with `onread`. Instead of `take` from then on. */
  pump(from: Socket, to: Writable, book: Book, { first, length }: PumpOptions = {}): void {
    this.#source = from;
    this.#taker = undefined;
    this.#sink = to;
    this.#book = book;
    if (length !== undefined) this.#left = length;
    const early = first ? [first, ...this.#early] : this.#early;
    this.#early = [];
    from.once("close", () => clearTimeout(this.#timer));
    if (length === undefined) linkEnds(from, to);
    else this.#linkWhole(from, to);
    for (const bytes of early) if (!this.#pass(bytes)) return;
    this.#goOn();
  }

  /** An end before the last byte is none. */
  #linkWhole(from: Socket, to: Writable): void {
    const onEnd = () => {
      if (this.#left > 0) to.destroy();
    };
    from.once("end", onEnd).once("close", onEnd).on("error", onEnd);
    to.on("error", () => from.destroy()).once("close", () => from.destroy());
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
    if (this.#sink) return this.#pass(bytes, block) && this.#mayRead;
    const copy = Buffer.from(bytes);
    this.#free.push(block);
    if (this.#taker) return this.#taker(copy);
    this.#early.push(copy);
    return false;
  }

  /** The block may be read into when it is written. False: nothing more is to be read. */
  #pass(received: Buffer, block?: Buffer): boolean {
    const bytes = received.length > this.#left ? received.subarray(0, this.#left) : received;
    const waitMs = this.#book?.(bytes.length);
    if (waitMs === undefined) {
      this.#source?.destroy();
      this.#sink?.destroy();
      return false;
    }
    if (waitMs >= 1) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#goOn();
      }, waitMs);
    }
    this.#left -= bytes.length;
    if (bytes.length > 0) this.#write(bytes, block);
    if (this.#left > 0) return true;
    this.#sink?.end();
    this.#source?.destroy();
    return false;
  }

  #write(bytes: Buffer, block: Buffer | undefined): void {
    let isFree = false;
    const free = () => {
      if (block && !isFree) this.#free.push(block);
      isFree = true;
    };
    this.#sink?.write(bytes, () => {
      free();
      this.#goOn();
    });
    // The kernel has taken all of it. The same block next: it is in the processor's cache still.
    if (this.#sink?.writableLength === 0) free();
  }

  #goOn(): void {
    if (this.#mayRead && this.#left > 0 && this.#source && !this.#source.destroyed) this.#source.resume();
  }
}
