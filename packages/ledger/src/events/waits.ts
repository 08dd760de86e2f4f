/** One wait. Its caller ends it, or `Waits.close` does. */
export interface Wait {
  readonly signal: AbortSignal;
  /** Must be called, however the wait ended. */
  end(): void;
}

/**
 * Ends any number of waits together. `AbortSignal.any` over one long-lived signal would do the same, and keep 2 KB of every
 * wait there ever was (seen on Node 24.9).
 */
export class Waits {
  readonly #open = new Set<AbortController>();
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  begin(outer?: AbortSignal): Wait {
    const controller = new AbortController();
    const abort = () => controller.abort();
    outer?.addEventListener("abort", abort);
    this.#open.add(controller);
    if (this.#closed || outer?.aborted) abort();
    const end = () => {
      outer?.removeEventListener("abort", abort);
      this.#open.delete(controller);
      abort();
    };
    return { signal: controller.signal, end };
  }

  close(): void {
    this.#closed = true;
    for (const controller of [...this.#open]) controller.abort();
  }
}
