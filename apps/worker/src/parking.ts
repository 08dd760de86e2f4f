import type { SandboxKey } from "@berth/protocol";
import type { ParkedSandbox, SandboxDriver } from "@berth/sandbox";
import type { Clock } from "@berth/tenancy";

export interface ParkingLimits {
  readonly count: number;
  readonly memoryBytes: number;
  readonly ageMs: number;
}

export interface ParkingOptions {
  readonly driver: Pick<SandboxDriver, "parked" | "evict">;
  readonly worker: string;
  readonly limits: ParkingLimits;
  readonly clock: Clock;
  readonly onEvicted: (key: SandboxKey) => void;
}

/** Between two looks; after a container was parked, the next look is at once. */
const lookMs = 2_000;
/** How many containers a stopping worker removes at once: none of its jobs needs the engine then. */
const removedAtOnce = 4;

/**
 * Keeps the parked containers of this host within bounds: the oldest go first. Every worker of the host does so, also for containers of
 * a worker that died; only one of them gets to remove each.
 */
export class Parking {
  readonly #options: ParkingOptions;
  readonly #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #own: readonly ParkedSandbox[] = [];
  #looked = Promise.withResolvers<void>();

  constructor(options: ParkingOptions) {
    this.#options = options;
  }

  /** Containers that this worker had parked at the last look. */
  get count(): number {
    return this.#own.length;
  }

  get memoryBytes(): number {
    return memoryOf(this.#own);
  }

  start(): void {
    this.#looking = this.#loop();
  }

  /** Call it when a container was parked. */
  lookSoon(): void {
    this.#looked.resolve();
  }

  /** `remove`: also removes the containers that this worker parked. */
  async stop({ remove }: { readonly remove: boolean }): Promise<void> {
    this.#stopping.abort();
    this.lookSoon();
    await this.#looking;
    if (!remove) return;
    const keys = (await this.#ofWorker().catch(() => [])).map(({ key }) => key).values();
    const removing = Array.from({ length: removedAtOnce }, async () => {
      // If one cannot be removed, the others still are.
      for (const key of keys) await this.#evict([key]).catch(() => {});
    });
    await Promise.all(removing);
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Fails without an engine or a disk. Then no container is parked either, and the next look tries again.
      await this.#look().catch(() => {});
      const timer = setTimeout(() => this.lookSoon(), lookMs);
      await this.#looked.promise;
      clearTimeout(timer);
      this.#looked = Promise.withResolvers<void>();
    }
  }

  async #look(): Promise<void> {
    const { driver, limits, clock } = this.#options;
    const over = overLimits(await driver.parked(), limits, clock.wall());
    await this.#evict(over.map(({ key }) => key));
    this.#own = await this.#ofWorker();
  }

  async #ofWorker(): Promise<ParkedSandbox[]> {
    const { driver, worker } = this.#options;
    return (await driver.parked()).filter((one) => one.worker === worker);
  }

  /** Removes one after the other, because jobs need the engine too. */
  async #evict(keys: readonly SandboxKey[]): Promise<void> {
    const { driver, onEvicted } = this.#options;
    for (const key of keys) if (await driver.evict(key)) onEvicted(key);
  }
}

/** The containers to remove, from a list with the oldest first. */
export function overLimits(
  parked: readonly ParkedSandbox[],
  { count, memoryBytes, ageMs }: ParkingLimits,
  nowMs: number,
): readonly ParkedSandbox[] {
  let kept = parked.length;
  let heldBytes = memoryOf(parked);
  return parked.filter((one) => {
    const isOver = kept > count || heldBytes > memoryBytes || (ageMs > 0 && nowMs - one.parkedAtMs >= ageMs);
    if (!isOver) return false;
    kept--;
    heldBytes -= one.memoryBytes;
    return true;
  });
}

function memoryOf(parked: readonly ParkedSandbox[]): number {
  return parked.reduce((sum, one) => sum + one.memoryBytes, 0);
}
