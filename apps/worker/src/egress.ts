import { EgressGate, type EgressReport, type Resolver } from "@berth/egress";
import type { EgressUse, SandboxKey, SandboxProfile } from "@berth/protocol";
import { LRUCache } from "lru-cache";

/** How many sandboxes' use of the hour is remembered. */
const mostKnown = 10_000;
/** How often traffic of background processes is reported. */
const reportMs = 10_000;

export interface EgressGatesOptions {
  readonly report: (key: SandboxKey, report: EgressReport) => void;
  readonly resolve?: Resolver | undefined;
}

/** Masks what is reported. */
export type ShownUse = <T extends EgressUse>(use: T) => T;

const unmasked: ShownUse = (use) => use;

interface Known {
  readonly gate: EgressGate;
  /** Of the present tenancy. It has that tenancy's secrets, and so is not kept beyond it. */
  shown: ShownUse;
}

/** Keeps the gate of each sandbox that this worker held lately. It outlives tenancies, so that a fresh container gains no bytes. */
export class EgressGates {
  readonly #options: EgressGatesOptions;
  readonly #gates = new LRUCache<SandboxKey, Known>({ max: mostKnown });
  readonly #timer: NodeJS.Timeout;

  constructor(options: EgressGatesOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#flush(), reportMs).unref();
  }

  /** Returns the sandbox's gate, which has the profile's rules from now on. */
  of(key: SandboxKey, { egress, limits }: SandboxProfile, shown: ShownUse): EgressGate {
    const known = this.#gates.get(key);
    if (known) {
      known.shown = shown;
      known.gate.replace(egress, limits);
      return known.gate;
    }
    const { report, resolve } = this.#options;
    const gate = new EgressGate({
      rules: egress,
      ceilings: limits,
      report: (one) => report(key, made.shown(one)),
      ...(resolve ? { resolve } : {}),
    });
    const made: Known = { gate, shown };
    this.#gates.set(key, made);
    return gate;
  }

  /** Nothing in the sandbox runs for that holder any more. */
  leave(key: SandboxKey, shown: ShownUse): void {
    const known = this.#gates.peek(key);
    if (known?.shown !== shown) return;
    known.gate.meter.flush();
    known.shown = unmasked;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#flush();
  }

  #flush(): void {
    for (const { gate } of this.#gates.values()) gate.meter.flush();
  }
}
