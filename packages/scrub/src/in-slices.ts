import { setImmediate } from "node:timers/promises";

/** How long one turn of the event loop goes to such work: a job of another tenant takes some ten turns, which may cost it 20 ms. */
const sliceMs = 2;

/** Work that can be interrupted wherever it yields. Between two yields it takes some tenths of a millisecond. */
export type Work<T> = Generator<void, T>;

/** All of it at once. */
export function whole<T>(work: Work<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

interface Piece {
  /** Whether it is done. */
  readonly step: () => boolean;
}

/** Does long work in slices, one a turn of the event loop. Works take turns, so that a small one does not wait for a large one. */
export class InSlices {
  readonly #waiting: Piece[] = [];
  #isRunning = false;

  /** The first slice is done at once, if no other work waits. */
  do<T>(work: Work<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const step = () => {
      try {
        const next = work.next();
        if (next.done) resolve(next.value);
        return next.done === true;
      } catch (error) {
        reject(error);
        return true;
      }
    };
    this.#waiting.push({ step });
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let piece = this.#waiting.shift(); piece !== undefined; piece = this.#waiting.shift()) {
      const endMs = performance.now() + sliceMs;
      let isDone = false;
      do isDone = piece.step();
      while (!isDone && performance.now() < endMs);
      if (!isDone) this.#waiting.push(piece);
      if (this.#waiting.length > 0) await setImmediate();
    }
    this.#isRunning = false;
  }
}
