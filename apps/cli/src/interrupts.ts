import { Complaint } from "./complaint.ts";
import { exitCodes } from "./exit-codes.ts";

/** A signal to a process group arrives twice: once from the kernel and once from a parent that forwards it. */
const sameMs = 500;

/**
 * Ctrl-C. Until a command asks for the signal, the first one ends the program at once, as users expect. Afterwards
 * the first one only fires the signal, and the second ends the program.
 */
export class Interrupts {
  readonly #controller = new AbortController();
  #listening = false;
  #exitCode: number = exitCodes.interrupted;
  #firstMs = 0;

  /** What the program ends with once it was interrupted. */
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
      // The process that started us with an IPC channel is gone. That is never the impatient second signal.
      process.once("disconnect", () => {
        if (!this.interrupted) this.#on(exitCodes.hungUp);
      });
      // A listener alone would keep a finished command from ending.
      process.channel?.unref();
    }
    return this.#controller.signal;
  }

  /** What a promise gives, unless Ctrl-C comes first; the promise then goes on and its result is ignored. */
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
