import type { ProfileStore, StoredLayer } from "@berth/ledger";
import type { LayerId } from "@berth/protocol";
import type { Policy } from "./policy.ts";

export interface LiveProfilesOptions {
  readonly store: Pick<ProfileStore, "get" | "list" | "version">;
  readonly policy: Pick<Policy, "replace">;
  readonly onChange: (change: { readonly layer: LayerId; readonly version: number }) => void;
}

/** How often a message that was missed is made up for. */
const lookMs = 10_000;

/** Keeps the worker's copy of the live layers: it hears of each change, and compares versions now and then. No job asks Redis for them. */
export class LiveProfiles {
  readonly #options: LiveProfilesOptions;
  readonly #layers = new Map<LayerId, StoredLayer>();
  #version = 0;
  #timer: NodeJS.Timeout | undefined;
  /** One after the other, or an older answer could replace a newer one. */
  #reading: Promise<void> = Promise.resolve();

  constructor(options: LiveProfilesOptions) {
    this.#options = options;
  }

  /** Before the first job: without its policy a worker starts nothing. */
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
      // One that was missed in between is found by the next look.
      if (change.version === this.#version + 1) this.#version = change.version;
      if (now) this.#layers.set(change.layer, now);
      else this.#layers.delete(change.layer);
      this.#replaceLayers();
      onChange(change);
    });
  }

  /** Messages may have been missed. */
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
    // Before the layers: a change in between is read again.
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
