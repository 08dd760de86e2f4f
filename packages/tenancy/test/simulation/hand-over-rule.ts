/** An attempt in the epoch in which it began. */
interface Begin {
  readonly key: string;
  readonly jobId: string;
  readonly attempt: number;
  readonly epoch: number;
}

/**
 * A job that began and of which init got nothing must not end as lost. Its holder takes the beginning back before it ends the job or gives
 * the sandbox up. A holder that died or was fenced may have had no time for that.
 */
export class HandOverRule {
  readonly #last = new Map<string, Begin>();
  readonly #handed = new Set<string>();
  readonly #givenUp = new Set<string>();

  began(begin: Begin): void {
    this.#last.set(begin.jobId, begin);
  }

  unbegun(jobId: string): void {
    this.#last.delete(jobId);
  }

  handed(begin: Omit<Begin, "key">): void {
    this.#handed.add(nameOf(begin));
  }

  /** Called for a holder that was not fenced: Redis had answered all its earlier calls. */
  gaveUp(key: string, epoch: number): void {
    this.#givenUp.add(`${key} ${epoch}`);
  }

  /** The beginning because of which the job must not end as lost; undefined if it may. */
  wrongToLose(jobId: string, epoch: number): string | undefined {
    const last = this.#last.get(jobId);
    if (!last || this.#handed.has(nameOf(last))) return undefined;
    const isKnown = last.epoch === epoch || this.#givenUp.has(`${last.key} ${last.epoch}`);
    return isKnown ? nameOf(last) : undefined;
  }
}

function nameOf({ jobId, attempt, epoch }: Omit<Begin, "key">): string {
  return `${jobId}~${attempt} epoch ${epoch}`;
}
