import { type Leases, makeRoomFor, type Offers, type OfferTarget } from "@berth/ledger";
import { type SandboxKey, type TenantId, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Clock, Tenancy } from "@berth/tenancy";

/** A sandbox that was asked to yield this long ago and is still held has a long job: its slot does not count as coming soon. */
const soonMs = 5_000;
/** If no offer uses a freed slot for so long, it no longer counts as reserved for its target. */
const unusedMs = 1_000;
/** A worker with free slots takes an offer within this time, also on a busy machine. */
const spareMs = 5_000;
/** Of more offers, one that is not needed makes little difference. */
const checkedMost = 8;

/** The part of a tenancy that the room maker needs. */
export type Yieldable = Pick<Tenancy, "key" | "yielding" | "idleSinceMs" | "yield">;

export interface HeldTenancy {
  readonly tenancy: Yieldable;
  readonly sinceMs: number;
}

export interface RoomMakerOptions {
  readonly redis: Redis;
  readonly instance: string;
  readonly offers: Pick<Offers, "waiting" | "next" | "withdraw" | "add">;
  readonly leases: Pick<Leases, "heldCounts" | "isUnheld">;
  readonly targets: readonly OfferTarget[];
  readonly held: ReadonlyMap<SandboxKey, HeldTenancy>;
  readonly freeSlots: () => number;
  /** Slots that other workers have free for the target's offers, by their last heartbeats. */
  readonly freeElsewhere: (target: OfferTarget) => Promise<number>;
  readonly quantumMs: number;
  readonly clock: Clock;
}

interface Busy {
  readonly tenancy: Yieldable;
  /** Sandboxes that its tenant would hold in the fleet after this one and the ones before it in the order have yielded. */
  readonly count: number;
}

interface Asked {
  readonly tenancy: Yieldable;
  readonly target: OfferTarget;
  readonly atMs: number;
  /** When its slot became free. */
  overMs?: number;
}

/** When offers of a target were seen to wait: first, and last. */
interface Waiting {
  readonly sinceMs: number;
  readonly seenMs: number;
}

/**
 * Makes room when offers wait and no slot is free: in the whole fleet as many sandboxes yield as offers wait. None yields for an offer
 * that another worker has a free slot for, unless that worker leaves it waiting for long. The longest idle yield first. Busy ones past
 * their quantum yield only if the offers still wait at the next look, since another worker may have an idle one. Each time, the tenant
 * that then holds the most sandboxes in the fleet gives one up.
 */
export class RoomMaker {
  readonly #options: RoomMakerOptions;
  #asked: Asked[] = [];
  /** By target: whether offers waited at the last look. */
  readonly #waited = new Map<OfferTarget, boolean>();
  readonly #waiting = new Map<OfferTarget, Waiting>();

  constructor(options: RoomMakerOptions) {
    this.#options = options;
  }

  async look(): Promise<void> {
    this.#forgetReplaced();
    const { offers, targets, freeSlots } = this.#options;
    for (const target of targets) {
      const asked = this.#asked.some((one) => one.target === target);
      if (freeSlots() > 0 && !asked) continue;
      const waiting = await this.#needed(target, await offers.waiting([target]));
      if (waiting > 0 || asked) await this.#ask(target, waiting);
      this.#waited.set(target, waiting > 0);
    }
  }

  /** Makes one sandbox of the tenant yield: it holds as many as it may, and more of its sandboxes wait. */
  yieldOne(tenant: TenantId): void {
    const isOf = ({ key }: Yieldable) => tenantOf(key) === tenant;
    const { idle, busy } = this.#yieldable();
    [...idle, ...busy].find(isOf)?.yield();
  }

  async #ask(target: OfferTarget, waiting: number): Promise<void> {
    const { redis, instance, clock } = this.#options;
    const ours = this.#asked.filter((one) => one.target === target);
    const lately = ours.filter(({ atMs, overMs }) => overMs !== undefined || clock.now() - atMs < soonMs);
    const { idle, busy } = await this.#candidates();
    const spare = await this.#spareFor(target, waiting, idle.length + busy.length);
    const now = await makeRoomFor(redis, instance, target, {
      ...{ waiting: Math.max(0, waiting - spare), lately: lately.length, all: ours.length },
      ...{ idle: idle.length, busy: busy.map(({ count }) => count) },
      busyGo: this.#waited.get(target) === true,
    });
    const going = busy.slice(0, now.busy).map(({ tenancy }) => tenancy);
    for (const tenancy of [...idle.slice(0, now.idle), ...going]) {
      tenancy.yield();
      this.#asked.push({ tenancy, target, atMs: clock.now() });
    }
  }

  /**
   * How many of the offers are for sandboxes that wait. A producer or a sweep may add one when the sandbox has a holder already, and
   * while no slot is free no worker takes it. Those are removed.
   */
  async #needed(target: OfferTarget, waiting: number): Promise<number> {
    const { offers, leases, freeSlots } = this.#options;
    if (waiting === 0 || waiting > checkedMost || freeSlots() > 0) return waiting;
    let needless = 0;
    for (const key of await offers.next(target, waiting)) {
      if (await leases.isUnheld(key)) continue;
      await offers.withdraw(key, target);
      // It may have been given up in between, and found this offer in place.
      if (await leases.isUnheld(key)) await offers.add(key, target);
      else needless++;
    }
    return waiting - needless;
  }

  /** How many of the offers another worker is about to take. */
  async #spareFor(target: OfferTarget, waiting: number, candidates: number): Promise<number> {
    if (waiting === 0 || candidates === 0) return 0;
    const nowMs = this.#options.clock.now();
    const before = this.#waiting.get(target);
    const isSame = before !== undefined && nowMs - before.seenMs < spareMs;
    const sinceMs = isSame ? before.sinceMs : nowMs;
    this.#waiting.set(target, { sinceMs, seenMs: nowMs });
    return nowMs - sinceMs < spareMs ? await this.#options.freeElsewhere(target) : 0;
  }

  /** Sandboxes that could yield, in the order in which they should. */
  async #candidates(): Promise<{ readonly idle: readonly Yieldable[]; readonly busy: readonly Busy[] }> {
    if (this.#options.freeSlots() > 0) return { idle: [], busy: [] };
    const { idle, busy } = this.#yieldable();
    return { idle, busy: await this.#mostHeldFirst(busy) };
  }

  async #mostHeldFirst(busy: readonly Yieldable[]): Promise<Busy[]> {
    const { leases, held } = this.#options;
    const tenants = new Set(busy.map(({ key }) => tenantOf(key)));
    const left = await leases.heldCounts([...tenants]);
    const less = (tenant: TenantId) => {
      const count = Math.max(0, (left.get(tenant) ?? 0) - 1);
      left.set(tenant, count);
      return count;
    };
    // Sandboxes that already yield do not count.
    for (const { tenancy } of held.values())
      if (tenancy.yielding && tenants.has(tenantOf(tenancy.key))) less(tenantOf(tenancy.key));
    return busy
      .map((tenancy) => ({ tenancy, count: less(tenantOf(tenancy.key)) }))
      .sort((a, b) => b.count - a.count);
  }

  /** The idle sandboxes, longest idle first, and the busy ones past their quantum, longest held first. */
  #yieldable(): { readonly idle: Yieldable[]; readonly busy: Yieldable[] } {
    const { held, clock, quantumMs } = this.#options;
    const here = [...held.values()].filter(({ tenancy }) => !tenancy.yielding);
    const idle = here
      .filter(({ tenancy }) => tenancy.idleSinceMs !== undefined)
      .sort((a, b) => (a.tenancy.idleSinceMs ?? 0) - (b.tenancy.idleSinceMs ?? 0));
    const busy = here
      .filter(
        ({ tenancy, sinceMs }) => tenancy.idleSinceMs === undefined && clock.now() - sinceMs > quantumMs,
      )
      .sort((a, b) => a.sinceMs - b.sinceMs);
    return { idle: idle.map(({ tenancy }) => tenancy), busy: busy.map(({ tenancy }) => tenancy) };
  }

  /** Forgets sandboxes whose slot another sandbox took, or no offer used. */
  #forgetReplaced(): void {
    const { held, clock, freeSlots } = this.#options;
    const nowMs = clock.now();
    for (const one of this.#asked)
      if (one.overMs === undefined && held.get(one.tenancy.key)?.tenancy !== one.tenancy) one.overMs = nowMs;
    let free = freeSlots();
    this.#asked = this.#asked.filter(
      ({ overMs }) => overMs === undefined || (nowMs - overMs < unusedMs && free-- > 0),
    );
  }
}
