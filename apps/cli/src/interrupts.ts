import { Complaint } from "./complaint.ts";
import { exitCodes } from "./exit-codes.ts";

/** A process group gets a signal twice: from the kernel, and from a parent that forwards it. */
const sameMs = 500;

/**
 * Ctrl-C. Until a command asks for the signal, the first Ctrl-C ends the program, as users expect. Afterwards the first one only
 * fires the signal, and the second one ends the program.
 */
export class Interrupts {
  readonly #controller = new AbortController();
  #listening = false;
  #exitCode: number = exitCodes.interrupted;
  #firstMs = 0;

  /** Exit code of an interrupted program. */
  get exitCode(): number {
    return this.#exitCode;
  }

  get interrupted(): boolean {
    return this.#controller.signal.aborted;
  }

  signal(): AbortSignal {
    if (!this.#listening) {
      this.#listening = true;
      process.on("SIGINT", () => this.#on(exitCodes.interrupted));
      process.on("SIGTERM", () => this.#on(exitCodes.terminated));
      // The terminal was closed.
      process.on("SIGHUP", () => this.#on(exitCodes.hungUp));
      // The parent that holds our IPC channel is gone. Never count that as an impatient second signal.
      process.once("disconnect", () => {
        if (!this.interrupted) this.#on(exitCodes.hungUp);
      });
      // The listener alone must not keep a finished command alive.
      process.channel?.unref();
    }
    return this.#controller.signal;
  }

  /** Awaits a promise unless Ctrl-C comes first; its result is then ignored. */
  async race<T>(promise: Promise<T>): Promise<T> {
    const signal = this.signal();
    const interrupted = Promise.withResolvers<never>();
    const onAbort = () => interrupted.reject(new Complaint("interrupted", { exitCode: this.#exitCode }));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.catch(() => {});
    try {
      return await Promise.race([promise, interrupted.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #on(exitCode: number): void {
    if (this.#controller.signal.aborted) {
      if (performance.now() - this.#firstMs > sameMs) process.exit(exitCode);
      return;
    }
    this.#firstMs = performance.now();
    this.#exitCode = exitCode;
    this.#controller.abort();
  }
}
