import {
  areCancelled,
  FleetView,
  type MarkerWaits,
  type Offer,
  type Offers,
  OfferTaker,
  type OfferTarget,
  type VanishedJob,
  type WorkerRecord,
} from "@berth/ledger";
import {
  type ControlMessage,
  epoch,
  type Job,
  type SandboxKey,
  type TenantId,
  tenantOf,
} from "@berth/protocol";
import { within } from "@berth/service";
import { Tenancy, type TenancyEnd } from "@berth/tenancy";
import { LRUCache } from "lru-cache";
import type { EngineHealth } from "./engine-health.ts";
import type { Resting } from "./resting.ts";
import { type HeldTenancy, RoomMaker } from "./room-maker.ts";
import { offerLapsed, sweep } from "./sweep.ts";
import { homeOf, type TakenLease, type TenancyParts, tenancyPorts } from "./tenancy-ports.ts";

export interface MemberParts extends TenancyParts {
  readonly offers: Offers;
  readonly health: EngineHealth;
  readonly resting: Resting;
  readonly waits: MarkerWaits;
  readonly enqueue: (job: Job) => Promise<unknown>;
  /** No slot is free any more: others count on this worker's by its last heartbeat. */
  readonly onFull: () => void;
  /** A job that was in no queue and with no worker has ended as lost. */
  readonly onVanished: (job: VanishedJob) => void;
}

interface Held extends HeldTenancy {
  readonly tenancy: Tenancy;
  readonly end: Promise<void>;
}

/** Between two looks at how many offers wait. */
const pressureLookMs = 250;
/** How long an answer about all workers counts. */
const workersLookMs = 1_000;
/** Jobs of one sandbox that are held ready with their data, up to 256 KiB each. */
const parkedMost = 128;
/** For so long the worker takes no offers of a tenant that holds as many sandboxes as it may. */
const tenantFullMs = 1_000;
const tenantsRemembered = 10_000;
/** Longest wait for Redis when a tenancy or the worker ends. The sweep repairs what was not written. */
const lastWriteMs = 2_000;

/**
 * A worker's share of the fleet: takes offers while it has slots, runs a tenancy for each, makes room when other offers wait, and
 * offers sandboxes again whose offers were lost.
 *
 *   taking ──drain()──▶ draining ──all tenancies over, or the budget is──▶ stopped
 *      └──sandboxes cannot be started here──▶ held back ──they can again──▶ taking
 */
export class FleetMember {
  readonly #parts: MemberParts;
  readonly #targets: readonly OfferTarget[];
  readonly #takers: readonly { readonly target: OfferTarget; readonly taker: OfferTaker }[];
  readonly #resting: Resting;
  readonly #room: RoomMaker;
  readonly #tenancies = new Map<SandboxKey, Held>();
  /** Sandboxes whose lease this worker is taking now. Each counts for a slot: the loops take side by side. */
  readonly #taking = new Set<SandboxKey>();
  /** Tenants that hold as many sandboxes as they may, for `tenantFullMs`. */
  readonly #full = new LRUCache<TenantId, true>({ max: tenantsRemembered, ttl: tenantFullMs });
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[] = [];
  #workers: { readonly atMs: number; readonly known: readonly WorkerRecord[] } | undefined;
  #slotFreed = Promise.withResolvers<void>();

  constructor(parts: MemberParts) {
    this.#parts = parts;
    const { pools } = parts.config;
    this.#targets = pools.flatMap((pool) => [
      { pool, home: undefined },
      ...(this.#home === undefined ? [] : [{ pool, home: this.#home }]),
    ]);
    this.#takers = this.#targets.map((target) => ({
      target,
      taker: new OfferTaker(parts.redis, parts.instance, target, parts.waits),
    }));
    this.#resting = parts.resting;
    this.#room = new RoomMaker({
      ...{ redis: parts.redis, instance: parts.instance, clock: parts.clock },
      ...{ offers: parts.offers, leases: parts.leases },
      ...{ targets: this.#targets, held: this.#tenancies, freeSlots: () => this.#freeSlots },
      freeElsewhere: (target) => this.#freeElsewhere(target),
      quantumMs: parts.config.quantumMs,
    });
  }

  get held(): number {
    return this.#tenancies.size;
  }

  start(): void {
    this.#parts.health.look(this.#stopping.signal);
    const { config, redis, leases, offers, artifacts, clock, enqueue, report, onVanished } = this.#parts;
    const options = {
      redis,
      leases,
      offers,
      artifacts,
      clock,
      targets: this.#targets,
      isResting: (key: SandboxKey) => this.#rests(key),
      sweepMs: config.sweepMs,
      forgetMs: config.forgetMs,
      pruneMs: config.pruneMs,
      enqueue,
      report,
      onVanished,
    };
    this.#loops.push(
      ...this.#takers.map(({ target, taker }) => this.#takeOffers(taker, target)),
      this.#watchPressure(),
      sweep(options, this.#stopping.signal),
      offerLapsed(options, this.#stopping.signal),
    );
  }

  /** Takes the sandbox of a container that an earlier process of this worker left. False: another worker has it, or no slot is free. */
  async adopt(key: SandboxKey, obeyed: number): Promise<boolean> {
    if (this.#tenancies.size >= this.#parts.config.maxSandboxes) return false;
    const held = await this.#take(key, obeyed);
    await held?.tenancy.adopt();
    return held !== undefined;
  }

  /** Takes nothing more, lets jobs finish for `budgetMs`, then ends them. */
  async drain(budgetMs: number): Promise<void> {
    this.#stopping.abort();
    this.#slotFreed.resolve();
    for (const { tenancy } of this.#tenancies.values()) tenancy.stop();
    const timer = setTimeout(() => this.abandon(), budgetMs);
    await within(lastWriteMs, Promise.all(this.#takers.map(({ taker }) => taker.close())));
    await within(lastWriteMs, Promise.all(this.#loops));
    // A loop may have taken one more meanwhile.
    for (const { tenancy } of this.#tenancies.values()) tenancy.stop();
    await Promise.all([...this.#tenancies.values()].map(({ end }) => end));
    clearTimeout(timer);
  }

  /** Ends all jobs now, and waits only until their results are published. */
  abandon(): void {
    for (const { tenancy } of this.#tenancies.values()) tenancy.abandon();
  }

  onMessage(message: ControlMessage): void {
    if (message.type === "cancel") this.#tenancies.get(message.key)?.tenancy.cancel(message.jobId);
    if (message.type === "room") this.#room.yieldOne(message.tenant as TenantId);
    if (message.type !== "pause") return;
    for (const [key, { tenancy }] of this.#tenancies) if (tenantOf(key) === message.tenant) tenancy.yield();
  }

  /** Asks Redis which of this worker's jobs are to be cancelled, for messages that were lost. */
  async lookAgain(): Promise<void> {
    for (const [key, { tenancy }] of this.#tenancies) {
      const here = tenancy.jobIds;
      const wanted = await areCancelled(this.#parts.redis, key, here);
      here.forEach((jobId, index) => {
        if (wanted[index]) tenancy.cancel(jobId);
      });
    }
  }

  get #home(): string | undefined {
    return homeOf(this.#parts.config);
  }

  async #takeOffers(taker: OfferTaker, target: OfferTarget): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        if (!(await this.#mayTake(target))) await clock.sleep(pressureLookMs, signal);
        else if (!this.#hasRoom) await this.#slotFreed.promise;
        else {
          const offer = await taker.next();
          if (offer) await this.#answer(offer, target);
        }
      } catch {
        await clock.sleep(pressureLookMs, signal).catch(() => {});
      }
    }
  }

  async #answer(offer: Offer, target: OfferTarget): Promise<void> {
    // This worker failed to start it a moment ago. The sweep offers it again, perhaps to another worker.
    if (this.#rests(offer.key)) return await offer.acknowledge();
    // Its jobs may have been cancelled since it was offered.
    if (!(await this.#parts.leases.isPending(offer.key))) {
      await offer.acknowledge();
      // A job that was added in between found this offer in place, and made none.
      return await this.#offerAgain(offer.key);
    }
    // Another loop may have taken the last slot, or the engine gone, while this one waited.
    if (!this.#hasRoom || this.#stopping.signal.aborted || !(await this.#mayTake(target)))
      return await offer.putBack();
    if (target.home === undefined) this.#parts.health.tried();
    await this.#take(offer.key);
    await offer.acknowledge();
  }

  async #mayTake(target: OfferTarget): Promise<boolean> {
    const { health, config } = this.#parts;
    if (health.admits({ livesHere: target.home !== undefined })) return true;
    return config.onNoSandbox === "refuse" && health.state.state === "away" && this.#isAlone(target);
  }

  /** Whether no other worker can run this target's jobs. Without an engine this worker takes only such jobs, to refuse them. */
  async #isAlone(target: OfferTarget): Promise<boolean> {
    return (await this.#workersFor(target)).length === 0;
  }

  async #freeElsewhere(target: OfferTarget): Promise<number> {
    const others = (await this.#workersFor(target)).filter(({ id }) => id !== this.#parts.config.workerId);
    return others.reduce((sum, { slots, held }) => sum + Math.max(0, slots - held), 0);
  }

  /** Those that can take its offers, as their last heartbeats show. */
  async #workersFor({ pool, home }: OfferTarget): Promise<WorkerRecord[]> {
    const { clock, redis } = this.#parts;
    if (this.#workers === undefined || clock.now() - this.#workers.atMs >= workersLookMs)
      this.#workers = { atMs: clock.now(), known: await new FleetView(redis).workers() };
    return this.#workers.known.filter(
      ({ health, pools, host }) =>
        health === "ok" && pools.includes(pool) && (home === undefined || host === home),
    );
  }

  get #hasRoom(): boolean {
    return this.#freeSlots > 0;
  }

  get #freeSlots(): number {
    return this.#parts.config.maxSandboxes - this.#tenancies.size - this.#taking.size;
  }

  async #take(key: SandboxKey, obeyed?: number): Promise<Held | undefined> {
    const { leases, config, instance, predecessor, clock } = this.#parts;
    if (this.#tenancies.has(key) || this.#taking.has(key) || this.#stopping.signal.aborted) return undefined;
    const holder = { worker: config.workerId, instance, predecessor, obeyed, home: this.#home };
    const takenAtMs = clock.now();
    this.#taking.add(key);
    try {
      const taken = await leases.take(key, holder, config.leaseMs);
      if (!taken.taken) {
        if (taken.why === "tenant-full") this.#noteFull(tenantOf(key));
        return undefined;
      }
      const { deadlineMs } = taken;
      const held = this.#hold(key, { epoch: epoch.parse(taken.epoch), deadlineMs }, takenAtMs);
      // Adopts at once, to end commands of this worker's dead process before another worker can have the sandbox.
      if (taken.takenOver) void held.tenancy.adopt();
      return held;
    } finally {
      this.#taking.delete(key);
      this.#freed();
    }
  }

  /** Whether this worker failed to start it a moment ago, or its tenant holds as many sandboxes as it may. */
  #rests(key: SandboxKey): boolean {
    return this.#resting.has(key) || this.#full.has(tenantOf(key));
  }

  #noteFull(tenant: TenantId): void {
    this.#full.set(tenant, true);
  }

  /** Wakes the loops that wait for a slot. */
  #freed(): void {
    this.#slotFreed.resolve();
    this.#slotFreed = Promise.withResolvers<void>();
  }

  #hold(key: SandboxKey, lease: TakenLease, takenAtMs: number): Held {
    const { config, clock, health } = this.#parts;
    const tenancy = new Tenancy(
      {
        key,
        epoch: lease.epoch,
        leaseMs: config.leaseMs,
        takenAtMs,
        parallel: config.base.parallel,
        parkedMost,
        idleMs: config.base.idleMs,
        maxAgeMs: config.base.maxAgeMs,
        onNoSandbox: config.onNoSandbox,
        closesFirst: config.storage === "shared",
        parks: config.parked.count > 0,
        removeOnStop: config.removeOnStop,
      },
      tenancyPorts(this.#parts, key, lease, {
        started: () => {
          this.#resting.started(key);
          health.started();
        },
        failed: (fault) => health.startFailed(key, fault, this.#stopping.signal),
      }),
    );
    const end = tenancy.run().then((how) => this.#ended(key, lease.epoch, how));
    const held = { tenancy, sinceMs: clock.now(), end };
    this.#tenancies.set(key, held);
    return held;
  }

  async #ended(key: SandboxKey, epoch: number, how: TenancyEnd): Promise<void> {
    const { leases } = this.#parts;
    const trouble = this.#tenancies.get(key)?.tenancy.lastTrouble;
    this.#tenancies.delete(key);
    this.#freed();
    // The other workers' sweeps offer it again at once, this one's after a rest.
    if (how === "no-sandbox") this.#resting.failed(key);
    await within(lastWriteMs, leases.note({ key, epoch }, how === "no-sandbox" ? trouble : undefined));
    if (how === "released" || how === "handed-back") await within(lastWriteMs, this.#offerAgain(key));
  }

  /** Adds an offer at the end of the stream, so that under pressure all sandboxes take turns. One that came before the release is gone. */
  async #offerAgain(key: SandboxKey): Promise<void> {
    const { offers, leases } = this.#parts;
    if (await leases.isUnheld(key)) await offers.add(key, await leases.offerTarget(key));
  }

  async #watchPressure(): Promise<void> {
    const { clock, onFull } = this.#parts;
    const { signal } = this.#stopping;
    let wasFull = false;
    while (!signal.aborted) {
      await clock.sleep(pressureLookMs, signal).catch(() => {});
      if (signal.aborted) return;
      const isFull = !this.#hasRoom;
      if (isFull && !wasFull) onFull();
      wasFull = isFull;
      await this.#room.look().catch(() => {});
    }
  }
}
