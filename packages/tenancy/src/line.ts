/**
 * The jobs that were taken from the sandbox's queue, in the order in which they were taken. That is the order of the line for every
 * holder, since no job is ever put back. This copy may be wrong: at first it lacks the jobs that a dead holder took, an answer may be lost,
 * and a worker that lost the lease may take a job. While the copy is marked stale, no job begins.
 */
export class Line {
  readonly #taken = new Set<string>();
  #staleMarks = 1;

  get staleMarks(): number {
    return this.#staleMarks;
  }

  markStale(): void {
    this.#staleMarks++;
  }

  /** The line is now as the queue has it. `staleMarks`: how many there were before the look; later marks remain. */
  refreshed(staleMarks: number): void {
    this.#staleMarks -= staleMarks;
  }

  replace(queuedIds: readonly string[]): void {
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
    const before: string[] = [];
    for (const taken of this.#taken) {
      if (taken === queuedId) break;
      before.push(taken);
    }
    return before;
  }
}
