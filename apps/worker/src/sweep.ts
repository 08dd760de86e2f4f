import type { Leases } from "@berth/lease";
import { forgetIdleQueues, type Offers } from "@berth/queue";
import type { Redis } from "@berth/redis";
import type { ArtifactStore } from "@berth/streams";
import type { Clock } from "@berth/tenancy";

export interface SweepOptions {
  readonly redis: Redis;
  readonly leases: Leases;
  readonly offers: Offers;
  readonly artifacts: ArtifactStore;
  readonly clock: Clock;
  readonly sweepMs: number;
  /** Queues unused for this long are removed. */
  readonly forgetMs: number;
}

const offeredAtOnce = 100;
const forgottenAtOnce = 100;
/** Removing idle queues is housekeeping: once in so many sweeps. */
const forgetEvery = 30;

/** The backstop for producers and workers that died between two steps. Every worker runs it; doing it twice is harmless. */
export async function sweep(options: SweepOptions, signal: AbortSignal): Promise<void> {
  const { redis, leases, offers, artifacts, clock, sweepMs, forgetMs } = options;
  for (let round = 1; !signal.aborted; round++) {
    await clock.sleep(sweepMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      const unheld = await leases.unheld({ limit: offeredAtOnce, olderThanMs: sweepMs });
      for (const key of unheld) await offers.addAgain(key, await leases.place(key));
      if (round % forgetEvery === 0)
        await forgetIdleQueues(redis, { idleMs: forgetMs, limit: forgottenAtOnce });
      await artifacts.sweep();
    } catch {
      // Redis is away; its connection tells of it once. Or the artifacts' directory cannot be used; jobs tell of that.
    }
  }
}
