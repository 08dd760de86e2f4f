import type { ProfileStore, StoredLayer } from "@berth/ledger";
import type { LayerId } from "@berth/protocol";
import type { Policy } from "./policy.ts";

export interface LiveProfilesOptions {
  readonly store: Pick<ProfileStore, "get" | "list" | "version">;
  readonly policy: Pick<Policy, "replace">;
  readonly onChange: (change: { readonly layer: LayerId; readonly version: number }) => void;
}

/** A change whose message was lost has effect after at most this long. */
const lookMs = 10_000;

/** Keeps the worker's copy of the live layers, from a message for each change and a look at the version now and then. No job asks Redis. */
export class LiveProfiles {
  readonly #options: LiveProfilesOptions;
  readonly #layers = new Map<LayerId, StoredLayer>();
  #version = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Reads follow one another: otherwise an older answer could replace a newer one. */
  #reading: Promise<void> = Promise.resolve();

  constructor(options: LiveProfilesOptions) {
    this.#options = options;
  }

  /** Resolves when the layers are read. No job may start before: its profile could be too loose. */
  async start(): Promise<void> {
    await this.#next(() => this.#readAll());
    this.#timer = setInterval(() => this.lookAgain(), lookMs);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  layerChanged(change: { readonly layer: LayerId; readonly version: number }): void {
    this.#try(async () => {
      const { store, onChange } = this.#options;
      const now = await store.get(change.layer);
      // If a message was lost in between, the versions differ at the next look.
      if (change.version === this.#version + 1) this.#version = change.version;
      if (now) this.#layers.set(change.layer, now);
      else this.#layers.delete(change.layer);
      this.#replaceLayers();
      onChange(change);
    });
  }

  /** Reads the layers again if a message was lost. */
  lookAgain(): void {
    this.#try(async () => {
      if ((await this.#options.store.version()) !== this.#version) await this.#readAll();
    });
  }

  /** A layer that cannot be read now, because Redis is away, is read at the next refresh. */
  #try(read: () => Promise<void>): void {
    void this.#next(read).catch(() => {});
  }

  #next(read: () => Promise<void>): Promise<void> {
    const done = this.#reading.then(read);
    this.#reading = done.catch(() => {});
    return done;
  }

  async #readAll(): Promise<void> {
    const { store } = this.#options;
    // Read before the layers: after a change in between, the next look reads again.
    const version = await store.version();
    const all = await store.list();
    this.#layers.clear();
    for (const one of all) this.#layers.set(one.layer, one);
    this.#version = version;
    this.#replaceLayers();
  }

  #replaceLayers(): void {
    this.#options.policy.replace(this.#layers.values());
  }
}
