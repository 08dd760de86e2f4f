import type { EgressGate } from "@berth/egress";
import type { EgressUse, SandboxKey, SandboxProfile } from "@berth/protocol";
import type { EgressGates } from "./egress.ts";
import type { SandboxSecrets } from "./secrets/sandbox-secrets.ts";

/** One tenancy's use of its sandbox's gate. A program chooses the names of hosts that it asks for, so one may have a secret in it. */
export class SandboxEgress {
  readonly #gates: EgressGates;
  readonly #key: SandboxKey;
  readonly #secrets: Pick<SandboxSecrets, "hostMask">;

  constructor(gates: EgressGates, key: SandboxKey, secrets: Pick<SandboxSecrets, "hostMask">) {
    this.#gates = gates;
    this.#key = key;
    this.#secrets = secrets;
  }

  /** Returns the gate, which has the profile's rules from now on. */
  of(profile: SandboxProfile): EgressGate {
    return this.#gates.of(this.#key, profile, this.shown);
  }

  /** The same with secrets masked in names of hosts. */
  readonly shown = <T extends EgressUse>(use: T): T => {
    const mask = this.#secrets.hostMask();
    return { ...use, hosts: use.hosts.map((one) => ({ ...one, host: mask(one.host) })) };
  };

  /** The tenancy is over. */
  leave(): void {
    this.#gates.leave(this.#key, this.shown);
  }
}
