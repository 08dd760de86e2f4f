import { createHash } from "node:crypto";
import type { SecretStore } from "@berth/ledger";
import { Fault, type Job, type TenantId } from "@berth/protocol";
import { InSlices, Scrubber, type Work } from "@berth/scrub";
import { type Keyring, open } from "@berth/secrets";
import { LRUCache } from "lru-cache";

/** A change whose message was lost has effect after at most this long. */
const lookMs = 10_000;
const mostTenants = 1_000;
/** Bytes of all forms whose scrubbers are kept for the next sandbox; the tables take about 30 bytes for each. */
const mostKeptBytes = 2 ** 22;

interface Loaded {
  readonly values: Promise<Values>;
  readonly atMs: number;
}

/** Values by the name of their variable. */
export type Values = Readonly<Record<string, string>>;

/** The worker's opened copy of tenants' secrets. It drops a tenant's at the message of a change, and reads again after `lookMs`. */
export class TenantSecrets {
  readonly #store: Pick<SecretStore, "all">;
  readonly #keyring: Keyring | undefined;
  readonly #scrubbers = new LRUCache<string, Scrubber>({
    maxSize: mostKeptBytes,
    sizeCalculation: ({ patternBytes }) => patternBytes + 1,
  });
  readonly #slices = new InSlices();
  readonly #building = new Map<string, Promise<Scrubber>>();
  readonly #loaded = new LRUCache<TenantId, Loaded>({ max: mostTenants });

  constructor(store: Pick<SecretStore, "all">, keyring: Keyring | undefined) {
    this.#store = store;
    this.#keyring = keyring;
  }

  secretsChanged(tenant: TenantId): void {
    this.#loaded.delete(tenant);
  }

  /** Drops all copies, because messages may have been lost. */
  lookAgain(): void {
    this.#loaded.clear();
  }

  /** All secrets that the tenant has stored. Throws when one cannot be opened: no command runs without it. */
  stored(tenant: TenantId): Promise<Values> {
    const known = this.#loaded.get(tenant);
    if (known && performance.now() - known.atMs < lookMs) return known.values;
    const loading = this.#load(tenant);
    // While Redis is away, the copy is used on.
    const values = known ? loading.catch(() => known.values) : loading;
    const loaded = { values, atMs: performance.now() };
    this.#loaded.set(tenant, loaded);
    values.catch(() => {
      if (this.#loaded.peek(tenant) === loaded) this.#loaded.delete(tenant);
    });
    return values;
  }

  /** One scrubber per set of values: its tables take up to a millisecond per secret, and are built beside other work. */
  scrubberOf(values: readonly string[]): Promise<Scrubber> {
    const sorted = values.toSorted();
    const key = createHash("sha256").update(JSON.stringify(sorted)).digest("base64");
    const known = this.#scrubbers.get(key);
    if (known) return Promise.resolve(known);
    const building = this.#building.get(key) ?? this.#build(key, sorted);
    this.#building.set(key, building);
    return building;
  }

  async #build(key: string, values: readonly string[]): Promise<Scrubber> {
    try {
      const scrubber = await this.inSlices(Scrubber.building(values.map((value) => Buffer.from(value))));
      this.#scrubbers.set(key, scrubber);
      return scrubber;
    } finally {
      this.#building.delete(key);
    }
  }

  /** Work that would hold up other tenants' jobs if it were done at once. */
  inSlices<T>(work: Work<T>): Promise<T> {
    return this.#slices.do(work);
  }

  /** The secrets of the job itself. */
  async own({ tenant, secrets = {} }: Pick<Job, "tenant" | "secrets">): Promise<Values> {
    const sealed = Object.entries(secrets);
    return sealed.length === 0 ? {} : await this.inSlices(this.#opened("job", tenant, sealed));
  }

  async #load(tenant: TenantId): Promise<Values> {
    return await this.inSlices(this.#opened("store", tenant, [...(await this.#store.all(tenant))]));
  }

  *#opened(
    use: "store" | "job",
    tenant: TenantId,
    sealed: readonly (readonly [string, string])[],
  ): Work<Values> {
    if (sealed.length === 0) return {};
    const keyring = this.#keyring;
    if (keyring === undefined) {
      const detail = "the job needs secrets, and its worker has no BERTH_SECRETS_KEY to open them with";
      throw new Fault("secrets-unavailable", { tenant, detail });
    }
    const opened: [name: string, value: string][] = [];
    for (const [name, text] of sealed) {
      yield;
      opened.push([name, open(keyring, { use, tenant, name }, text)]);
    }
    return Object.fromEntries(opened);
  }
}
