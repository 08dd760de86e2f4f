/**
 * What is taken from the sandbox's queue, in the order in which it was taken. That is the order of the line, whoever took it, since
 * nothing is ever put back. We may be wrong about it: at first nobody knows what a dead holder left, an answer may be lost, a worker
 * that lost the lease may take something. While there are doubts nothing begins.
 */
export class Line {
  readonly #taken = new Set<string>();
  #doubts = 1;

  get doubts(): number {
    return this.#doubts;
  }

  doubt(): void {
    this.#doubts++;
  }

  /** It is as it was found. `doubts`: those there were before anybody looked; later ones remain. */
  settle(doubts: number): void {
    this.#doubts -= doubts;
  }

  found(queuedIds: readonly string[]): void {
    this.#taken.clear();
    for (const queuedId of queuedIds) this.#taken.add(queuedId);
  }

  took(queuedId: string): void {
    this.#taken.add(queuedId);
  }

  left(queuedId: string): void {
    this.#taken.delete(queuedId);
  }

  has(queuedId: string): boolean {
    return this.#taken.has(queuedId);
  }

  before(queuedId: string): string[] {
    const taken = [...this.#taken];
    return taken.slice(0, taken.indexOf(queuedId));
  }
}
