import type { Phase } from "./phase.ts";
import type { TenancyOptions } from "./tenancy-options.ts";
import type { ClosingHow, SandboxPort } from "./tenancy-ports.ts";

export interface ClosingOptions extends Pick<TenancyOptions, "removeOnStop" | "parks" | "closesFirst"> {
  readonly sandbox: SandboxPort;
  readonly phase: Phase;
  readonly onTrouble: (error: unknown) => void;
}

/** Closes a tenancy's sandbox once, and again only to remove the container of one that was fenced. Does not throw. */
export class Closing {
  readonly #options: ClosingOptions;
  #isClosed = false;

  constructor(options: ClosingOptions) {
    this.#options = options;
  }

  /** Whether the sandbox is closed before the lease is released. Another worker may adopt a parked container once it is released. */
  get isBeforeRelease(): boolean {
    return this.#options.closesFirst || this.#how === "park";
  }

  async close({ isFenced }: { readonly isFenced: boolean }): Promise<void> {
    if (this.#isClosed && !isFenced) return;
    this.#isClosed = true;
    await this.#options.sandbox.close(isFenced ? "remove" : this.#how).catch(this.#options.onTrouble);
  }

  get #how(): ClosingHow {
    const { phase, removeOnStop, parks } = this.#options;
    if (phase.because === "worker-stops") return removeOnStop ? "remove" : "leave";
    return parks ? "park" : "remove";
  }
}
