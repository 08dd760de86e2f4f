import type { Leases } from "@berth/lease";
import { type Epoch, epoch, redisKeys, type SandboxKey, type SandboxProfile } from "@berth/protocol";
import { JobSource, type Offers, OfferTaker, unfinishedKeys } from "@berth/queue";
import type { Redis } from "@berth/redis";
import type { SandboxDriver } from "@berth/sandbox";
import type { JobEvents } from "@berth/streams";
import { type Clock, Tenancy, type TenancyEvent, type TenancyPorts } from "@berth/tenancy";
import type { Config } from "./config.ts";
import { DriverSandbox } from "./sandbox-port.ts";

export interface MemberParts {
  readonly config: Config;
  readonly instance: string;
  readonly redis: Redis;
  readonly subscriber: Redis;
  readonly leases: Leases;
  readonly offers: Offers;
  readonly events: JobEvents;
  readonly driver: SandboxDriver;
  readonly profile: SandboxProfile;
  readonly clock: Clock;
  readonly report: (event: TenancyEvent) => void;
}

/** How long one look at the offers' pressure is good for. */
const pressureLookMs = 500;

/**
 * A worker's share of the fleet: takes offers while it has slots, runs a tenancy for each, makes room when others wait, and
 * offers again what was forgotten.
 *
 *   taking ──drain()──▶ draining ──all tenancies over, or the budget is──▶ stopped
 */
export class FleetMember {
  readonly #parts: MemberParts;
  readonly #taker: OfferTaker;
  readonly #tenancies = new Map<
    SandboxKey,
    { readonly tenancy: Tenancy; readonly sinceMs: number; readonly end: Promise<void> }
  >();
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];

  constructor(parts: MemberParts) {
    this.#parts = parts;
    this.#taker = new OfferTaker(parts.redis, parts.instance);
    parts.subscriber.on("message", (channel: string, jobId: string) => {
      for (const [key, { tenancy }] of this.#tenancies) {
        if (channel === redisKeys.cancellations(key)) tenancy.cancel(jobId);
      }
    });
  }

  get held(): number {
    return this.#tenancies.size;
  }

  start(): void {
    this.#loops.push(this.#takeOffers(), this.#sweep());
  }

  /** Takes nothing more, lets jobs finish for `budgetMs`, then ends them. */
  async drain(budgetMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#taker.close();
    for (const { tenancy } of this.#tenancies.values()) tenancy.yield();
    const over = Promise.all([...this.#tenancies.values()].map(({ end }) => end));
    const timer = setTimeout(() => this.abandon(), budgetMs);
    await over;
    clearTimeout(timer);
    await Promise.all(this.#loops);
  }

  /** Now: nothing is waited for but the ends being told. */
  abandon(): void {
    for (const { tenancy } of this.#tenancies.values()) tenancy.abandon();
  }

  async #takeOffers(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (this.#tenancies.size >= this.#parts.config.BERTH_MAX_SANDBOXES) {
          await this.#makeRoom();
          await this.#parts.clock.sleep(pressureLookMs, signal);
          continue;
        }
        const offer = await this.#taker.next();
        if (!offer) continue;
        await this.#take(offer.key);
        await offer.settle();
      } catch {
        await this.#parts.clock.sleep(pressureLookMs, signal).catch(() => {});
      }
    }
  }

  async #take(key: SandboxKey): Promise<void> {
    const { leases, config, instance } = this.#parts;
    if (this.#tenancies.has(key) || this.#stopping.signal.aborted) return;
    const holder = { worker: config.BERTH_WORKER_ID, instance };
    const taken = await leases.take(key, holder, config.BERTH_LEASE_MS);
    if (!taken.taken) return;
    this.#hold(key, epoch.parse(taken.epoch));
  }

  #hold(key: SandboxKey, holdEpoch: Epoch): void {
    const { config, subscriber, clock, offers } = this.#parts;
    const tenancy = new Tenancy(
      {
        key,
        epoch: holdEpoch,
        leaseMs: config.BERTH_LEASE_MS,
        parallel: config.BERTH_PARALLEL,
        idleMs: config.BERTH_IDLE_MS,
      },
      this.#ports(key, holdEpoch),
    );
    const end = subscriber
      .subscribe(redisKeys.cancellations(key))
      .catch(() => {})
      .then(() => tenancy.run())
      .then(async (how) => {
        this.#tenancies.delete(key);
        await subscriber.unsubscribe(redisKeys.cancellations(key)).catch(() => {});
        // To the end of the offers: under pressure everybody gets a turn.
        if (how === "handed-back") await offers.add(key).catch(() => {});
      });
    this.#tenancies.set(key, { tenancy, sinceMs: clock.now(), end });
  }

  #ports(key: SandboxKey, holdEpoch: Epoch): TenancyPorts {
    const { config, redis, leases, events, driver, profile, clock, report, instance } = this.#parts;
    const source = new JobSource(redis, key, `${instance}-${holdEpoch}`);
    const to = (jobId: string, inbox?: string) => ({ key, epoch: holdEpoch, jobId, inbox });
    return {
      clock,
      report,
      lease: {
        renew: async () =>
          (await leases.renew(key, holdEpoch, config.BERTH_LEASE_MS)).renewed ? "renewed" : "lost",
        release: async ({ onlyIfEmpty }) =>
          (await leases.release(key, holdEpoch, { onlyIfEmpty, queueKeys: unfinishedKeys(key) })).state,
      },
      jobs: {
        next: () => source.next(),
        active: () => source.active(),
        close: () => source.close(),
        isCancelled: async (jobId) => (await redis.sismember(redisKeys.cancelled(key), jobId)) === 1,
      },
      events: {
        started: (jobId) =>
          events.publish(to(jobId), [
            { type: "started", worker: config.BERTH_WORKER_ID, epoch: holdEpoch, atMs: clock.wall() },
          ]),
        output: (jobId, pieces) =>
          events.publish(
            to(jobId),
            pieces.map(({ stream, bytes }) => ({ type: stream, bytes })),
          ),
        finished: (jobId, inbox, result) => events.publish(to(jobId, inbox), [{ type: "finished", result }]),
        progress: async (jobId) => (await events.progress(key, jobId)).state,
      },
      sandbox: new DriverSandbox(driver, { key, epoch: holdEpoch, profile, leaseMs: config.BERTH_LEASE_MS }),
    };
  }

  /** Somebody waits and no slot is free: the longest idle goes; if none is idle, those past their quantum. */
  async #makeRoom(): Promise<void> {
    const { offers, clock, config } = this.#parts;
    if ((await offers.waiting()) === 0) return;
    const held = [...this.#tenancies.values()];
    const idle = held
      .filter(({ tenancy }) => tenancy.idleSinceMs !== undefined)
      .sort((a, b) => (a.tenancy.idleSinceMs ?? 0) - (b.tenancy.idleSinceMs ?? 0));
    if (idle[0]) idle[0].tenancy.yield();
    else for (const one of held) if (clock.now() - one.sinceMs > config.BERTH_QUANTUM_MS) one.tenancy.yield();
  }

  /** The backstop for producers and workers that died between two steps. */
  async #sweep(): Promise<void> {
    const { leases, offers, clock, config } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.sleep(config.BERTH_SWEEP_MS, signal).catch(() => {});
      if (signal.aborted) return;
      try {
        for (const key of await leases.unheld({ limit: 100, olderThanMs: config.BERTH_SWEEP_MS }))
          await offers.addAgain(key);
      } catch {
        // Redis is away; its connection tells of it once.
      }
    }
  }
}
