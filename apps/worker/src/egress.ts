import { EgressGate, type EgressReport, type Resolver } from "@berth/egress";
import type { SandboxKey, SandboxProfile } from "@berth/protocol";
import { LRUCache } from "lru-cache";

/** How many sandboxes' use of the hour is remembered. */
const mostKnown = 10_000;
/** How often traffic of background processes is reported. */
const reportMs = 10_000;

export interface EgressGatesOptions {
  readonly report: (key: SandboxKey, report: EgressReport) => void;
  readonly resolve?: Resolver | undefined;
}

/** Keeps the gate of each sandbox that this worker held lately. It outlives tenancies, so that a fresh container gains no bytes. */
export class EgressGates {
  readonly #options: EgressGatesOptions;
  readonly #gates = new LRUCache<SandboxKey, EgressGate>({ max: mostKnown });
  readonly #timer: NodeJS.Timeout;

  constructor(options: EgressGatesOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#flush(), reportMs).unref();
  }

  /** Returns the sandbox's gate, which has the profile's rules from now on. */
  of(key: SandboxKey, { egress, limits }: SandboxProfile): EgressGate {
    const known = this.#gates.get(key);
    if (known) {
      known.replace(egress, limits);
      return known;
    }
    const { report, resolve } = this.#options;
    const gate = new EgressGate({
      rules: egress,
      ceilings: limits,
      report: (one) => report(key, one),
      ...(resolve ? { resolve } : {}),
    });
    this.#gates.set(key, gate);
    return gate;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#flush();
  }

  #flush(): void {
    for (const gate of this.#gates.values()) gate.meter.flush();
  }
}
