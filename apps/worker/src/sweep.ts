import {
  type ArtifactStore,
  auditUnfinished,
  forgetIdleQueues,
  type Leases,
  markMemory,
  type Offers,
  type OfferTarget,
  pruningJobs,
  repairIndexes,
  unfinishedKeys,
  type VanishedJob,
} from "@berth/ledger";
import { type Job, type SandboxKey, sandboxKeyOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Clock, TenancyEvent } from "@berth/tenancy";

type PruningEvent = Extract<TenancyEvent, { event: "pruning.begun" | "pruning.ended" | "sandbox.pruned" }>;

export interface SweepOptions {
  readonly redis: Redis;
  readonly leases: Leases;
  readonly offers: Offers;
  readonly artifacts: ArtifactStore;
  readonly clock: Clock;
  /** Where this worker takes offers. An offer to a pool or host without workers would wait for ever. */
  readonly targets: readonly OfferTarget[];
  /** Whether this worker failed to start it a moment ago, and leaves it to other workers. */
  readonly isResting: (key: SandboxKey) => boolean;
  readonly sweepMs: number;
  /** Queues unused for this long are removed. */
  readonly forgetMs: number;
  /** Sandboxes unused for this long are destroyed; 0: never. */
  readonly pruneMs: number;
  readonly enqueue: (job: Job) => Promise<unknown>;
  readonly report: (event: PruningEvent) => void;
  /** A job was in no queue and with no worker, and ended as lost. */
  readonly onVanished: (job: VanishedJob) => void;
}

/** Expired leases that one look takes, and the time between two looks. A look is one call that reads the head of an index. */
const lapsedAtOnce = 100;
const lapsedLookMs = 300;
/** How many pending sandboxes one script call reads, and how many such pages one sweep reads. */
const pageSize = 100;
const pagesPerSweep = 10;
/** A sweep reads no further page after it has offered so many. */
const offeredPerSweep = 100;
const forgottenAtOnce = 100;
/** Each pruned sandbox is a job that needs a container. */
const prunedAtOnce = 20;
/** Idle queues and sandboxes are removed once in so many sweeps. */
const forgetEvery = 30;
/** Jobs that no worker will end are looked for once in so many sweeps: each worker looks at two or three jobs a second, oldest first. */
const auditEvery = 10;
const auditedAtOnce = 50;
/** Only older jobs are looked at: most have ended by then. */
const auditedAfterMs = 60_000;
/** Each worker begins at a random job up to this one, so that workers which started together do not look at the same jobs. */
const auditedFromMost = 10_000;
/** How many sweeps the mark of a nearly full Redis lives. While it does, new jobs are refused. Every sweep renews or removes it. */
const markedSweeps = 5;

/** The backstop for producers and workers that died between two steps. Every worker runs it; doing it twice is harmless. */
export async function sweep(options: SweepOptions, signal: AbortSignal): Promise<void> {
  const { redis, artifacts, clock, sweepMs, forgetMs } = options;
  let after = 0;
  let outboxesFrom = 0;
  let auditFrom = Math.floor(Math.random() * auditedFromMost);
  for (let round = 1; !signal.aborted; round++) {
    await clock.sleep(sweepMs, signal).catch(() => {});
    if (signal.aborted) return;
    await tried(() => markMemory(redis, markedSweeps * sweepMs));
    outboxesFrom = (await tried(() => repairIndexes(redis, outboxesFrom))) ?? outboxesFrom;
    if (round % forgetEvery === 0)
      await tried(() => forgetIdleQueues(redis, { idleMs: forgetMs, limit: forgottenAtOnce }));
    if (options.pruneMs > 0 && round % forgetEvery === 0) await tried(() => prune(options));
    if (round % auditEvery === 0) auditFrom = (await tried(() => audit(options, auditFrom))) ?? auditFrom;
    await tried(() => artifacts.sweep());
    // Last, since a Redis that is full refuses offers: what makes room comes before.
    after = (await tried(() => offerPages(options, after))) ?? after;
  }
}

/** Ignores a step's failure, so that the other steps run. */
async function tried<R>(step: () => Promise<R>): Promise<R | undefined> {
  try {
    return await step();
  } catch {
    // Redis is away, which its connection logs, or the artifacts' directory cannot be used, which jobs report.
    return undefined;
  }
}

/** A pass that finds nothing logs nothing. */
async function prune({ redis, pruneMs, enqueue, report }: SweepOptions): Promise<void> {
  const jobs = await pruningJobs(redis, { unusedMs: pruneMs, limit: prunedAtOnce });
  if (jobs.length === 0) return;
  report({ event: "pruning.begun", sandboxes: jobs.length, unusedMs: pruneMs });
  let ordered = 0;
  for (const job of jobs) {
    // Another worker may have been first; the tenant may be paused, or have as many jobs as it may.
    try {
      await enqueue(job);
      ordered++;
      report({ event: "sandbox.pruned", key: sandboxKeyOf(job) });
    } catch {}
  }
  report({ event: "pruning.ended", ordered, left: jobs.length - ordered });
}

/** Looks at the next page of jobs that have not ended. Returns where the next audit goes on. */
async function audit({ redis, onVanished }: SweepOptions, from: number): Promise<number> {
  const page = { from, limit: auditedAtOnce, olderThanMs: auditedAfterMs };
  const { vanished, next } = await auditUnfinished(redis, page);
  for (const job of vanished) onVanished(job);
  return next;
}

/**
 * Offers the sandboxes that a dead worker held, in all pools and homes, soon after their leases expired. The script names each only once,
 * to the worker that asks first.
 */
export async function offerLapsed(
  { leases, offers, clock }: Pick<SweepOptions, "leases" | "offers" | "clock">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(lapsedLookMs, signal).catch(() => {});
    if (signal.aborted) return;
    try {
      for (const key of await leases.lapsed(lapsedAtOnce)) await offer({ leases, offers }, key);
    } catch {
      // Redis is away. `offerPages` finds a sandbox that was named and not offered.
    }
  }
}

/** Offers pending sandboxes that no worker holds, page by page. Returns where the next sweep goes on; 0 after the last page. */
async function offerPages(options: SweepOptions, from: number): Promise<number> {
  const { leases, offers, targets, isResting, sweepMs } = options;
  let after = from;
  let offered = 0;
  for (let page = 0; page < pagesPerSweep && offered < offeredPerSweep; page++) {
    const { keys, next } = await leases.unheld({ after, limit: pageSize, olderThanMs: sweepMs });
    const found = await Promise.all(
      keys.map(async (key) => ({ key, target: await leases.offerTarget(key) })),
    );
    const ours = found.filter(
      ({ key, target }) => !isResting(key) && targets.some((one) => isSame(one, target)),
    );
    for (const { key, target } of ours) await offer({ leases, offers }, key, target);
    offered += ours.length;
    if (next === undefined) return 0;
    after = next;
  }
  return after;
}

async function offer(
  { leases, offers }: Pick<SweepOptions, "leases" | "offers">,
  key: SandboxKey,
  target?: OfferTarget,
): Promise<void> {
  if (await leases.dropIdle(key, unfinishedKeys(key))) return;
  await offers.addAgain(key, target ?? (await leases.offerTarget(key)));
}

function isSame(a: OfferTarget, b: OfferTarget): boolean {
  return a.pool === b.pool && a.home === b.home;
}
