import type { Phase } from "./phase.ts";
import type { TenancyOptions } from "./tenancy-options.ts";
import type { SandboxPort } from "./tenancy-ports.ts";

export interface ClosingOptions extends Pick<TenancyOptions, "removeOnStop"> {
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

  async close({ isFenced }: { readonly isFenced: boolean }): Promise<void> {
    if (this.#isClosed && !isFenced) return;
    this.#isClosed = true;
    const { sandbox, phase, removeOnStop, onTrouble } = this.#options;
    const mayStay = phase.because === "worker-stops" && !removeOnStop;
    await sandbox.close({ remove: !mayStay || isFenced }).catch(onTrouble);
  }
}
