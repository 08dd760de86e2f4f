import { Fault, type JobSecrets, type SealedSecrets, type SecretName, type TenantId } from "@berth/protocol";
import { Keyring, open, seal } from "@berth/secrets";

/** Seals secrets before they are sent. Refuses them if no key is configured. */
export class Sealer {
  readonly #keyring: Keyring | undefined;

  constructor(secretsKey: string | undefined) {
    const keyring = secretsKey === undefined ? undefined : Keyring.parse(secretsKey);
    if (typeof keyring === "string")
      throw new Fault("invalid-argument", { argument: "the secrets key", problem: keyring });
    this.#keyring = keyring;
  }

  sealForJob(tenant: TenantId, secrets: JobSecrets): SealedSecrets {
    const keyring = this.#key(tenant);
    return Object.fromEntries(
      Object.entries(secrets).map(([name, value]) => [
        name,
        seal(keyring, { use: "job", tenant, name }, value),
      ]),
    );
  }

  sealForStore(tenant: TenantId, name: SecretName, value: string): string {
    return seal(this.#key(tenant), { use: "store", tenant, name }, value);
  }

  /** Undefined: already sealed with the present key. */
  reseal(tenant: TenantId, name: SecretName, sealed: string): string | undefined {
    const keyring = this.#key(tenant);
    const binding = { use: "store", tenant, name } as const;
    const value = open(keyring, binding, sealed);
    return sealed.split(".")[1] === keyring.first.id ? undefined : seal(keyring, binding, value);
  }

  #key(tenant: TenantId): Keyring {
    if (this.#keyring !== undefined) return this.#keyring;
    const detail = "a secret is only sent sealed, and there is no BERTH_SECRETS_KEY here to seal it with";
    throw new Fault("secrets-unavailable", { tenant, detail });
  }
}
