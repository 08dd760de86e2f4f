import type { SandboxKey } from "@berth/protocol";
import type { Clock } from "@berth/tenancy";
import { LRUCache } from "lru-cache";

const restMs = { first: 3_000, last: 60_000 } as const;
/** Beyond so many the worker forgets the one that failed longest ago, and tries it again early. */
const restingMost = 10_000;

/**
 * Sandboxes that this worker failed to start. Each rests for a while, longer after every failure: other workers get a chance to start it,
 * and one broken sandbox costs this worker little.
 */
export class Resting {
  readonly #clock: Pick<Clock, "now">;
  readonly #rests = new LRUCache<SandboxKey, { readonly untilMs: number; readonly pauseMs: number }>({
    max: restingMost,
  });

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  has(key: SandboxKey): boolean {
    return (this.#rests.peek(key)?.untilMs ?? 0) > this.#clock.now();
  }

  failed(key: SandboxKey): void {
    const before = this.#rests.get(key);
    const pauseMs = before ? Math.min(before.pauseMs * 2, restMs.last) : restMs.first;
    this.#rests.set(key, { untilMs: this.#clock.now() + pauseMs, pauseMs });
  }

  started(key: SandboxKey): void {
    this.#rests.delete(key);
  }

  /** Lets them be tried again: the cause of their failure may be gone. */
  clear(): void {
    this.#rests.clear();
  }
}
