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

/** Between two looks; a container that was parked is looked at sooner. */
const lookMs = 2_000;
/** Removed side by side when the worker stops: no job of its own needs the engine then. */
const lastAtOnce = 4;

/**
 * Keeps the parked containers of this host within bounds: the oldest go first. Every worker of the host does so, also for those of
 * one that died; only one of them gets to remove each.
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

  /** Parked by this worker, at the last look. */
  get count(): number {
    return this.#own.length;
  }

  get memoryBytes(): number {
    return memoryOf(this.#own);
  }

  start(): void {
    this.#looking = this.#loop();
  }

  /** Something was parked. */
  lookSoon(): void {
    this.#looked.resolve();
  }

  /** `remove`: those that this worker parked go too. */
  async stop({ remove }: { readonly remove: boolean }): Promise<void> {
    this.#stopping.abort();
    this.lookSoon();
    await this.#looking;
    if (!remove) return;
    const keys = (await this.#ofWorker().catch(() => [])).map(({ key }) => key).values();
    const removing = Array.from({ length: lastAtOnce }, async () => {
      // One that cannot be removed keeps no other.
      for (const key of keys) await this.#evict([key]).catch(() => {});
    });
    await Promise.all(removing);
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Without an engine, or a disk, nothing is parked either.
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

  /** One after the other: removing is the engine's work, and jobs need it too. */
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
