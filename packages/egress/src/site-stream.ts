import type { Socket } from "node:net";
import { Duplex, type Writable } from "node:stream";
import type { BlockReader } from "./block-reader.ts";
import type { Book } from "./pump.ts";

const headEnd = "\r\n\r\n";

/**
 * A site's connection as Node's HTTP client has it. The client's parser gets one head at a time, and a body only if it has to take it
 * apart. Any other body goes from the socket to its reader: parsing it would split and allocate all of it.
 *
 *   head ──a whole head──▶ held ──nextHead: it was informational──▶ head
 *                           ├──parseBody: chunked, or none──▶ parsed
 *                           └──passBody: so many bytes, or up to the end──▶ passed
 *
 * While it is held, nothing is read.
 */
export class SiteStream extends Duplex {
  readonly #outside: Socket;
  readonly #reader: BlockReader;
  readonly #maxHeadBytes: number;
  #state: "head" | "held" | "parsed" | "passed" = "head";
  /** Received, and not for the parser yet. */
  #rest: Buffer = Buffer.alloc(0);

  /** The socket must be made with `reader.onread`. */
  constructor(outside: Socket, reader: BlockReader, maxHeadBytes: number) {
    super({ allowHalfOpen: true });
    this.#outside = outside;
    this.#reader = reader;
    this.#maxHeadBytes = maxHeadBytes;
    reader.take(outside, (bytes) => this.#take(bytes));
    // For good: the client listens only while it needs the stream, and an error without a listener would end the worker.
    this.on("error", () => {});
    outside.on("error", (error) => this.#end(error));
    outside.once("close", () => this.#end());
    outside.once("end", () => {
      if (this.#state === "passed") return;
      // An unfinished head: the parser reports it.
      this.push(this.#rest);
      this.push(null);
    });
  }

  /** The client sees no more of it. */
  get isPassed(): boolean {
    return this.#state === "passed";
  }

  /** After an informational answer. */
  nextHead(): void {
    // The parser calls this while it reads, and can be given more only afterwards.
    queueMicrotask(() => {
      this.#state = "head";
      this.#giveHead();
      if (this.#state === "head") this.#reader.resume();
    });
  }

  /** Everything that follows is the parser's. */
  parseBody(): void {
    queueMicrotask(() => {
      this.#state = "parsed";
      const rest = this.#rest;
      this.#rest = Buffer.alloc(0);
      if (rest.length === 0 || this.push(rest)) this.#reader.resume();
    });
  }

  /** The body is the next `length` bytes; undefined: all up to the end. Bytes beyond are dropped with the connection. */
  passBody(to: Writable, length: number | undefined, book: Book): void {
    this.#state = "passed";
    this.#reader.pump(this.#outside, to, book, {
      first: this.#rest,
      ...(length === undefined ? {} : { length }),
    });
  }

  #take(bytes: Buffer): boolean {
    if (this.#state === "parsed") return this.push(bytes);
    this.#rest = Buffer.concat([this.#rest, bytes]);
    if (this.#state === "head") this.#giveHead();
    return this.#state === "head" && !this.destroyed;
  }

  #giveHead(): void {
    // Empty lines before a head would look like its end.
    let begin = 0;
    while (this.#rest[begin] === 0x0d || this.#rest[begin] === 0x0a) begin++;
    this.#rest = this.#rest.subarray(begin);
    const end = this.#rest.indexOf(headEnd);
    if (end === -1 && this.#rest.length > this.#maxHeadBytes)
      this.destroy(new Error(`its head is over ${this.#maxHeadBytes} bytes`));
    if (end === -1) return;
    const head = this.#rest.subarray(0, end + headEnd.length);
    this.#rest = this.#rest.subarray(head.length);
    this.#state = "held";
    this.push(head);
  }

  #end(error?: Error): void {
    if (this.#state !== "passed") this.destroy(error);
  }

  override _read(): void {
    if (this.#state === "head" || this.#state === "parsed") this.#reader.resume();
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#outside.write(chunk)) done();
    else this.#outside.once("drain", () => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#outside.destroy();
    done(error);
  }
}
