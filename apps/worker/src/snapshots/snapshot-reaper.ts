import type { SnapshotStore } from "@berth/ledger";
import { type SandboxProfile, snapshotName, tenantId } from "@berth/protocol";
import type { TreeOnDisk, Trees } from "@berth/sandbox";

export interface SnapshotReaperOptions {
  readonly store: Pick<SnapshotStore, "fateOf" | "forget">;
  readonly trees: Pick<Trees, "list" | "remove" | "removeLeftovers">;
  /** The profile of containers that remove files. */
  readonly profile: () => SandboxProfile;
  readonly lookMs?: number;
  readonly onRemoved: (id: string) => void;
}

const defaultLookMs = 3_000;
/** A snapshot is on disk before Redis knows it, and a Redis that was restored may lack it for hours. */
const unknownKeptMs = 24 * 3_600_000;
/** Between two looks for files that dead workers left. */
const leftoversEveryMs = 600_000;

/**
 * Removes the files of snapshots that were removed or have expired. Every worker of the host does so; only one of them gets to remove
 * each.
 */
export class SnapshotReaper {
  readonly #options: SnapshotReaperOptions;
  readonly #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #stop = Promise.withResolvers<void>();
  #leftoversAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: SnapshotReaperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#looking = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stop.resolve();
    await this.#looking;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const timer = setTimeout(() => this.#stop.resolve(), this.#options.lookMs ?? defaultLookMs);
      await this.#stop.promise;
      clearTimeout(timer);
      this.#stop = Promise.withResolvers<void>();
      // Fails without Redis or an engine; the next look tries again.
      if (!signal.aborted) await this.#look().catch(() => {});
    }
  }

  async #look(): Promise<void> {
    const { trees, profile } = this.#options;
    const { signal } = this.#stopping;
    for (const tree of await trees.list()) if (!signal.aborted) await this.#judge(tree);
    if (performance.now() - this.#leftoversAtMs < leftoversEveryMs) return;
    await trees.removeLeftovers(profile(), { signal });
    this.#leftoversAtMs = performance.now();
  }

  async #judge({ id, madeAtMs }: TreeOnDisk): Promise<void> {
    const { store, trees, profile, onRemoved } = this.#options;
    const [owner, named] = id.split(".", 2);
    const tenant = tenantId.safeParse(owner);
    const name = snapshotName.safeParse(named);
    // Not a snapshot's name, so not the reaper's to remove.
    if (!tenant.success || !name.success) return;
    const fate = await store.fateOf(tenant.data, name.data, id);
    if (fate === "kept" || (fate === "unknown" && Date.now() - madeAtMs < unknownKeptMs)) return;
    await trees.remove(id, profile(), { signal: this.#stopping.signal });
    await store.forget(tenant.data, id);
    onRemoved(id);
  }
}
