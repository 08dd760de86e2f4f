import type { WorkerIds, WorkerInstance, WorkerStatus } from "@berth/ledger";
import { heartbeatMs } from "@berth/protocol";

export interface RegistryOptions {
  readonly ids: WorkerIds;
  readonly self: WorkerInstance;
  readonly keptMs: number;
  readonly describe: () => WorkerStatus;
  /** Called once, when another process has claimed the worker id. */
  readonly onReplaced: (instance: string) => void;
}

/** Heartbeat: renews the claim on the worker id and publishes the worker's status. */
export class Registry {
  readonly #options: RegistryOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.beat(), heartbeatMs);
    await this.beat();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#options.ids.leave(this.#options.self).catch(() => {});
  }

  /** Now, and not only with the next regular one. Does not throw. */
  async beat(): Promise<void> {
    if (this.#timer === undefined) return;
    const { ids, self, keptMs, describe, onReplaced } = this.#options;
    try {
      const claimed = await ids.claim(self, { keptMs, seen: true, status: describe() });
      if (claimed.ours || this.#timer === undefined) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
      onReplaced(claimed.by);
    } catch {
      // Redis is away; its connection reports that once.
    }
  }
}
