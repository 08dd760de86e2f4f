import type { Readable, Writable } from "node:stream";

/** Returns how long to wait after that many bytes; undefined: no more may pass. */
export type Book = (bytes: number) => number | undefined;

/** Write buffer. With a smaller one, both sides would wait for each other at every chunk. */
const heldBytes = 512 * 1024;

/**
 * Copies `from` to its end, at the pace of `to` and of `book`. Calls `book` per chunk and waits as long as it returns; undefined closes
 * both sides. An end is passed on; an error closes both sides.
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

/** Passes an end on; an error on one side destroys both. */
export function linkEnds(from: Readable, to: Writable): void {
  const breakOff = () => {
    from.destroy();
    to.destroy();
  };
  from.once("end", () => to.end());
  // These listeners stay: a second error without a listener would end the worker.
  from.on("error", breakOff);
  to.on("error", breakOff);
  from.once("close", () => {
    // Closed without an end: destroy `to`, so that its reader does not see a normal end.
    if (!from.readableEnded) to.destroy();
  });
  to.once("close", () => {
    if (!to.writableFinished) from.destroy();
  });
}
