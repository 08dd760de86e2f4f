import { setImmediate as nextTurn } from "node:timers/promises";

interface Event {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * Time that advances only when nothing is left to do now: the next event runs once all promise callbacks have run. Events of the same
 * moment run in the order in which they were made.
 */
export class VirtualTime {
  readonly #heap: Event[] = [];
  #nowMs = 0;
  #made = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** The returned function cancels the event. */
  after(ms: number, run: () => void): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#made++, run };
    this.#push(event);
    return () => {
      event.run = undefined;
    };
  }

  /** Runs the next event, if there is one until then, and all promise callbacks that follow from it. */
  async step(untilMs = Number.POSITIVE_INFINITY): Promise<boolean> {
    for (;;) {
      const first = this.#heap[0];
      if (!first || first.atMs > untilMs) return false;
      this.#pop();
      if (!first.run) continue;
      this.#nowMs = first.atMs;
      first.run();
      await nextTurn();
      return true;
    }
  }

  async pass(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await nextTurn();
    while (await this.step(untilMs));
    this.#nowMs = untilMs;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!this.#swapIfSooner(index, above)) return;
      index = above;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    heap[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const right = left + 1;
      const sooner = right < heap.length && this.#sooner(right, left) ? right : left;
      if (sooner >= heap.length || !this.#swapIfSooner(sooner, index)) return;
      index = sooner;
    }
  }

  #sooner(a: number, b: number): boolean {
    const first = this.#heap[a];
    const second = this.#heap[b];
    if (!first || !second) return false;
    return first.atMs < second.atMs || (first.atMs === second.atMs && first.order < second.order);
  }

  #swapIfSooner(a: number, b: number): boolean {
    const first = this.#heap[a];
    const second = this.#heap[b];
    if (!first || !second || !this.#sooner(a, b)) return false;
    this.#heap[a] = second;
    this.#heap[b] = first;
    return true;
  }
}
