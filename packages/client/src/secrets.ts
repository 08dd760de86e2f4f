import { checked, SecretStore, type SetSecretOptions, type TenantNames } from "@berth/ledger";
import { Fault, isFault, problemsOf, secretName, secretValue, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Sealer } from "./sealer.ts";

export interface Reencrypted {
  /** Secrets that this call sealed with the present key. */
  readonly resealed: number;
  /** Secrets that the present key had sealed already. */
  readonly unchanged: number;
  /** `<tenant> <name>` of secrets that no configured key opens. */
  readonly unreadable: readonly string[];
}

/** Tenants' stored secrets: every command of the tenant has them in its environment. No call reads a value back. */
export class Secrets {
  readonly #store: SecretStore;
  readonly #names: TenantNames;
  readonly #sealer: Sealer;

  /** @internal Use `berth.secrets`. */
  constructor(redis: Redis, names: TenantNames, sealer: Sealer) {
    this.#names = names;
    this.#store = new SecretStore(redis);
    this.#sealer = sealer;
  }

  /** Creates or replaces a secret. Jobs that start from now on get it. `mustExist`: only replace. */
  async set(tenant: string, name: string, value: string, options: SetSecretOptions = {}): Promise<void> {
    const of = await this.#names.admitGiven(tenant);
    const known = checked(secretName, name, "the secret's name");
    const parsed = secretValue.safeParse(value);
    // Errors must not contain the value.
    if (!parsed.success)
      throw new Fault("invalid-argument", {
        argument: `the value of ${known}`,
        problem: problemsOf(parsed.error).join("; "),
      });
    await this.#store.set(of, known, this.#sealer.sealForStore(of, known, value), options);
  }

  /** In alphabetical order. */
  names(tenant: string): Promise<string[]> {
    return this.#store.names(checked(tenantId, tenant, "the tenant"));
  }

  /** False: no such secret. */
  remove(tenant: string, name: string): Promise<boolean> {
    const of = checked(tenantId, tenant, "the tenant");
    return this.#store.remove(of, checked(secretName, name, "the secret's name"));
  }

  /** Seals every stored secret with the first key, so that the other keys can be removed. Idempotent. */
  async reencrypt(): Promise<Reencrypted> {
    let resealed = 0;
    let unchanged = 0;
    const unreadable: string[] = [];
    for (const tenant of await this.#store.tenants()) {
      for (const [name, sealed] of await this.#store.all(tenant)) {
        try {
          const to = this.#sealer.reseal(tenant, name, sealed);
          // The secret was replaced meanwhile, and so sealed with the present key.
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
