import type { SandboxDriver } from "@berth/sandbox";
import type { Clock } from "@berth/tenancy";

export type EngineState = { readonly state: "ok" } | { readonly state: "degraded"; readonly why: string };

export interface EngineHealthOptions {
  readonly driver: Pick<SandboxDriver, "check">;
  readonly clock: Clock;
  /** Once when it is lost, once when it is back. */
  readonly onChange: (state: EngineState) => void;
}

const probeMs = { first: 500, last: 5_000 } as const;

/**
 * Whether sandboxes can be had here.
 *
 *   ok ──a sandbox could not be had──▶ degraded ──the engine answers again──▶ ok
 *
 * While degraded the worker stays up and takes no offers: another worker may be luckier.
 */
export class EngineHealth {
  readonly #options: EngineHealthOptions;
  #state: EngineState = { state: "ok" };
  #probing = false;

  constructor(options: EngineHealthOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }

  /** Looks again and again until the engine answers. */
  degrade(why: string, signal: AbortSignal): void {
    if (this.#probing) return;
    this.#probing = true;
    this.#set({ state: "degraded", why });
    void this.#probe(signal).finally(() => {
      this.#probing = false;
    });
  }

  async #probe(signal: AbortSignal): Promise<void> {
    const { driver, clock } = this.#options;
    for (let pause: number = probeMs.first; !signal.aborted; pause = Math.min(pause * 2, probeMs.last)) {
      await clock.sleep(pause, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        await driver.check({ signal });
        return this.#set({ state: "ok" });
      } catch (error) {
        this.#state = { state: "degraded", why: error instanceof Error ? error.message : String(error) };
      }
    }
  }

  #set(state: EngineState): void {
    this.#state = state;
    this.#options.onChange(state);
  }
}
