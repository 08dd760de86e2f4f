import { checked, SecretStore, type SetSecretOptions, type TenantNames } from "@berth/ledger";
import { Fault, isFault, problemsOf, secretName, secretValue, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Sealer } from "./sealer.ts";

export interface Reencrypted {
  /** Sealed with the present key now. */
  readonly resealed: number;
  /** Were sealed with it already. */
  readonly unchanged: number;
  /** `<tenant> <name>` of those that no configured key opens. */
  readonly unreadable: readonly string[];
}

/** Tenants' stored secrets: every command of the tenant has them in its environment. No call reads a value back. */
export class Secrets {
  readonly #store: SecretStore;
  readonly #names: TenantNames;
  readonly #sealer: Sealer;

  /** @internal Its users get it from a `Berth`. */
  constructor(redis: Redis, names: TenantNames, sealer: Sealer) {
    this.#names = names;
    this.#store = new SecretStore(redis);
    this.#sealer = sealer;
  }

  /** Makes it or replaces its value. Jobs that begin from now on have it. `mustExist`: only replaces. */
  async set(tenant: string, name: string, value: string, options: SetSecretOptions = {}): Promise<void> {
    const of = await this.#names.admitGiven(tenant);
    const known = checked(secretName, name, "the secret's name");
    const parsed = secretValue.safeParse(value);
    // The value itself must not be in what is thrown.
    if (!parsed.success)
      throw new Fault("invalid-argument", {
        argument: `the value of ${known}`,
        problem: problemsOf(parsed.error).join("; "),
      });
    await this.#store.set(of, known, this.#sealer.sealForStore(of, known, value), options);
  }

  /** In order. */
  names(tenant: string): Promise<string[]> {
    return this.#store.names(checked(tenantId, tenant, "the tenant"));
  }

  /** False: there was none. */
  remove(tenant: string, name: string): Promise<boolean> {
    const of = checked(tenantId, tenant, "the tenant");
    return this.#store.remove(of, checked(secretName, name, "the secret's name"));
  }

  /** Seals every stored secret with the first key, so that the others can be given up. May be run again. */
  async reencrypt(): Promise<Reencrypted> {
    let resealed = 0;
    let unchanged = 0;
    const unreadable: string[] = [];
    for (const tenant of await this.#store.tenants()) {
      for (const [name, sealed] of await this.#store.all(tenant)) {
        try {
          const to = this.#sealer.reseal(tenant, name, sealed);
          // One that was set meanwhile was sealed anew.
          if (to === undefined || !(await this.#store.replace(tenant, name, { from: sealed, to })))
            unchanged++;
          else resealed++;
        } catch (error) {
          if (!isFault(error, "secret-unreadable")) throw error;
          unreadable.push(`${tenant} ${name}`);
        }
      }
    }
    return { resealed, unchanged, unreadable };
  }
}
