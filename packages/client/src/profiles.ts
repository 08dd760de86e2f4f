import {
  checked,
  checkLayer,
  ProfileStore,
  type SetLayerOptions,
  type StoredLayer,
  type TenantNames,
} from "@berth/ledger";
import {
  type LayerChange,
  layerChanges,
  layerId,
  type NamedLayerInput,
  tenantInLayer,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** `by` names the caller in the history. */
export type SetProfileOptions = Partial<SetLayerOptions>;

/**
 * The live layers of the profiles: `fleet`, `profile.NAME`, `tenant.ID` and `agent.TENANT.NAME`; docs/profiles.md lists what each may
 * set. Workers learn of a change at once. A sandbox whose profile changed gets a fresh container before its next job.
 */
export class Profiles {
  readonly #store: ProfileStore;
  readonly #names: TenantNames;
  readonly #onChange: () => void;

  /** @internal Use `berth.profiles`. */
  constructor(redis: Redis, names: TenantNames, onChange: () => void) {
    this.#names = names;
    this.#store = new ProfileStore(redis);
    this.#onChange = onChange;
  }

  /** Undefined: no such layer. */
  async get(layer: string): Promise<StoredLayer | undefined> {
    return await this.#store.get(checkedId(layer));
  }

  /** Ordered by their ids. */
  list(): Promise<StoredLayer[]> {
    return this.#store.list();
  }

  /**
   * Replaces the whole layer, or removes it with `null`. Throws `invalid-profile` with every problem, or `profile-changed` if its
   * version is not `ifVersion`; both change nothing.
   */
  async set(
    layer: string,
    settings: NamedLayerInput | null,
    options: SetProfileOptions = {},
  ): Promise<StoredLayer> {
    const id = checkedId(layer);
    const tenant = tenantInLayer(layer);
    if (tenant !== undefined) await this.#names.admitGiven(tenant);
    const changed = await this.#store.set(id, settings, withActor(options));
    this.#onChange();
    return changed;
  }

  /** Previews `set`, field by field. Throws what `set` would throw. */
  async diff(layer: string, settings: NamedLayerInput | null): Promise<LayerChange[]> {
    const id = checkedId(layer);
    const wanted = settings === null ? {} : checkLayer(id, settings);
    return layerChanges((await this.#store.get(id))?.settings ?? {}, wanted);
  }

  /** The layer after each of its last 50 changes, newest first. */
  async history(layer: string): Promise<StoredLayer[]> {
    return await this.#store.history(checkedId(layer));
  }

  /** Restores the layer of that version, as a new change. */
  async rollback(layer: string, version: number, options: SetProfileOptions = {}): Promise<StoredLayer> {
    const changed = await this.#store.rollback(checkedId(layer), version, withActor(options));
    this.#onChange();
    return changed;
  }
}

function checkedId(layer: string) {
  return checked(layerId, layer, "the layer");
}

function withActor({ by = "client", ifVersion }: SetProfileOptions): SetLayerOptions {
  return { by, ifVersion };
}
