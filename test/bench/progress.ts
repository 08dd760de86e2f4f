/** Prints a scenario's progress on stderr: a line that is redrawn on a terminal, and otherwise a line every few seconds. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  #name = "";
  #startedMs = 0;
  #quarter = 0;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  begin(name: string, about: string): void {
    this.#name = name;
    this.#startedMs = performance.now();
    this.#quarter = 0;
    this.#out.write(`${name}: ${about}\n`);
  }

  step(done: number, total: number): void {
    if (this.#out.isTTY) {
      this.#out.write(`\r\x1b[K  ${done} of ${total} rounds, ${this.#seconds()} s`);
      return;
    }
    const quarter = Math.floor((4 * done) / total);
    if (quarter <= this.#quarter) return;
    this.#quarter = quarter;
    this.#out.write(`  ${done} of ${total} rounds, ${this.#seconds()} s\n`);
  }

  end(word: string): void {
    if (this.#out.isTTY) this.#out.write("\r\x1b[K");
    this.#out.write(`  ${this.#name} ${word} after ${this.#seconds()} s\n`);
  }

  #seconds(): string {
    return ((performance.now() - this.#startedMs) / 1000).toFixed(1);
  }
}
