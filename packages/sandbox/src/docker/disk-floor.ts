import { statfs } from "node:fs/promises";
import { BoundedWait } from "@berth/protocol";
import type { QuotaExceeded } from "../quota-guard.ts";

/** A look is good for this long: several sandboxes look at once, and the disk does not change that fast. */
const lookMs = 100;
/** Between two looks while an operation takes room. */
const watchMs = 300;

/**
 * The free space that workspaces leave to everything else on their disk. A quota bounds each workspace, and all together may
 * still fill a disk: below the floor nothing grows, for any quota.
 */
export class DiskFloor {
  readonly #directory: string;
  readonly #floorBytes: number;
  #looking: Promise<QuotaExceeded | undefined> | undefined;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  /** 0: there is no floor. */
  constructor(directory: string, floorBytes: number) {
    this.#directory = directory;
    this.#floorBytes = floorBytes;
  }

  /** Undefined while there is room, and when the disk cannot be looked at: `probeWorkspaces` reports that. */
  low(): Promise<QuotaExceeded | undefined> {
    if (this.#floorBytes === 0) return Promise.resolve(undefined);
    const nowMs = performance.now();
    if (!this.#looking || nowMs - this.#lookedAtMs >= lookMs) {
      this.#lookedAtMs = nowMs;
      this.#looking = this.#look().catch(() => undefined);
    }
    return this.#looking;
  }

  /** Runs an operation that takes room. Throws `refusal` if the disk is below the floor, at the beginning or later; then `grow` is aborted. */
  async whileRoom<T>(
    signal: AbortSignal | undefined,
    refusal: (low: QuotaExceeded) => unknown,
    grow: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const before = await this.low();
    if (before) throw refusal(before);
    const full = new AbortController();
    using wait = new BoundedWait().endWith(signal, full.signal);
    let found: QuotaExceeded | undefined;
    const look = async () => {
      found ??= await this.low();
      if (found) full.abort(refusal(found));
    };
    const timer = setInterval(() => void look(), watchMs);
    try {
      return await grow(wait.signal);
    } catch (error) {
      throw found === undefined || signal?.aborted ? error : refusal(found);
    } finally {
      clearInterval(timer);
    }
  }

  async #look(): Promise<QuotaExceeded | undefined> {
    const { bavail, bsize } = await statfs(this.#directory);
    const freeBytes = bavail * bsize;
    if (freeBytes >= this.#floorBytes) return undefined;
    return { kind: "quota-exceeded", limit: this.#floorBytes, used: freeBytes, unit: "disk" };
  }
}
