import type { Readable, Writable } from "node:stream";

/** How long to wait after so many bytes; undefined: nothing more may pass. */
export type Book = (bytes: number) => number | undefined;

/** What may wait for `to`. Less would have both sides wait for each other at every chunk. */
const heldBytes = 512 * 1024;

/**
 * Copies until the end of `from`, at the pace of `to` and of `book`, which is asked for each chunk how long to wait after it; undefined
 * ends both at once. An end is passed on, a breach ends both sides.
 */
export function pump(from: Readable, to: Writable, book: Book): void {
  let timer: NodeJS.Timeout | undefined;
  let isFull = false;
  const goOn = () => {
    if (timer === undefined && !isFull) from.resume();
  };
  const breakOff = () => {
    clearTimeout(timer);
    from.destroy();
    to.destroy();
  };
  from.on("data", (chunk: Buffer) => {
    const waitMs = book(chunk.length);
    if (waitMs === undefined) return breakOff();
    isFull = !to.write(chunk) && to.writableLength >= heldBytes;
    if (waitMs >= 1) {
      timer = setTimeout(() => {
        timer = undefined;
        goOn();
      }, waitMs);
    }
    if (isFull || timer !== undefined) from.pause();
  });
  to.on("drain", () => {
    isFull = false;
    goOn();
  });
  linkEnds(from, to);
  from.once("close", () => clearTimeout(timer));
}

/** An end is passed on; what breaks one side breaks the other. */
export function linkEnds(from: Readable, to: Writable): void {
  const breakOff = () => {
    from.destroy();
    to.destroy();
  };
  from.once("end", () => to.end());
  // For good: a second error that nobody hears would end the worker.
  from.on("error", breakOff);
  to.on("error", breakOff);
  from.once("close", () => {
    // Without an end before it, the other side must not take it for one.
    if (!from.readableEnded) to.destroy();
  });
  to.once("close", () => {
    if (!to.writableFinished) from.destroy();
  });
}
