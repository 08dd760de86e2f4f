import type { Authority } from "./authority.ts";
import type { TenancyPorts } from "./tenancy-ports.ts";

export interface AdoptionOptions {
  readonly ports: Pick<TenancyPorts, "sandbox" | "clock">;
  readonly authority: Authority;
  /** The deadline of the lease of the worker's earlier process. */
  readonly earlierOverMs: number;
  readonly onDone: () => void;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Opens the sandbox that an earlier process of the worker left, before any job needs it. The container stays; init ends what that process
 * left running in it.
 *
 *   none ──start()──▶ opening ──opened, or the earlier lease is over──▶ done
 *
 * While it is opening, the tenancy keeps the sandbox: otherwise the leftovers would run beside the next holder's commands.
 */
export class Adoption {
  readonly #options: AdoptionOptions;
  #state: "none" | "opening" | "done" = "none";
  #opened: Promise<void> | undefined;

  constructor(options: AdoptionOptions) {
    this.#options = options;
  }

  get isOpening(): boolean {
    return this.#state === "opening";
  }

  /** Call it once. Does not throw. */
  start(): Promise<void> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #open(): Promise<void> {
    const { ports, authority, earlierOverMs, onTrouble } = this.#options;
    const { signal, leaseLeftMs } = authority;
    this.#state = "opening";
    try {
      (await ports.sandbox.open(undefined, { signal, leaseLeftMs })).done();
      this.#done();
    } catch (error) {
      if (!signal.aborted) onTrouble(error);
      const leftMs = Math.max(0, earlierOverMs - ports.clock.now());
      void ports.clock.sleep(leftMs, signal).then(
        () => this.#done(),
        () => {},
      );
    }
  }

  #done(): void {
    this.#state = "done";
    this.#options.onDone();
  }
}
