import { type Leases, makeRoomFor, type Offers, type OfferTarget } from "@berth/ledger";
import { type SandboxKey, type TenantId, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { Clock, Tenancy } from "@berth/tenancy";

/** A sandbox that was asked this long ago and is still there runs something long. */
const soonMs = 5_000;
/** A slot that was made free and that no offer came for is free for all from then on. */
const unusedMs = 1_000;

/** What a tenancy is to those who want its slot. */
export type Yieldable = Pick<Tenancy, "key" | "yielding" | "idleSinceMs" | "yield">;

export interface HeldTenancy {
  readonly tenancy: Yieldable;
  readonly sinceMs: number;
}

export interface RoomMakerOptions {
  readonly redis: Redis;
  readonly instance: string;
  readonly offers: Pick<Offers, "waiting">;
  readonly leases: Pick<Leases, "heldCounts">;
  readonly targets: readonly OfferTarget[];
  readonly held: ReadonlyMap<SandboxKey, HeldTenancy>;
  readonly freeSlots: () => number;
  readonly quantumMs: number;
  readonly clock: Clock;
}

/** Busy sandboxes in the order in which they yield, with what their tenants would still hold in the whole fleet after those before. */
interface Busy {
  readonly tenancy: Yieldable;
  readonly count: number;
}

interface Asked {
  readonly tenancy: Yieldable;
  readonly target: OfferTarget;
  readonly atMs: number;
  /** Since when its slot is free. */
  overMs?: number;
}

/**
 * Makes room when offers wait and no slot is free: in the whole fleet as many sandboxes yield as offers wait. The longest idle yield
 * first. Those past their quantum yield if the offers still wait at the next look: another worker may have an idle one. Of these the
 * tenant that holds the most sandboxes in the fleet gives one up, then again the one that holds the most after that.
 */
export class RoomMaker {
  readonly #options: RoomMakerOptions;
  #asked: Asked[] = [];
  /** By target: whether offers waited at the last check. */
  readonly #waited = new Map<OfferTarget, boolean>();

  constructor(options: RoomMakerOptions) {
    this.#options = options;
  }

  async look(): Promise<void> {
    this.#forgetReplaced();
    const { offers, targets, freeSlots } = this.#options;
    for (const target of targets) {
      const asked = this.#asked.some((one) => one.target === target);
      if (freeSlots() > 0 && !asked) continue;
      const waiting = await offers.waiting([target]);
      if (waiting > 0 || asked) await this.#ask(target, waiting);
      this.#waited.set(target, waiting > 0);
    }
  }

  /** Makes one sandbox yield, of a tenant that has as many as it may while more of its sandboxes wait. */
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
    const now = await makeRoomFor(redis, instance, target, {
      ...{ waiting, lately: lately.length, all: ours.length },
      ...{ idle: idle.length, busy: busy.map(({ count }) => count) },
      busyGo: this.#waited.get(target) === true,
    });
    const going = busy.slice(0, now.busy).map(({ tenancy }) => tenancy);
    for (const tenancy of [...idle.slice(0, now.idle), ...going]) {
      tenancy.yield();
      this.#asked.push({ tenancy, target, atMs: clock.now() });
    }
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
    // Those that yield already count no more.
    for (const { tenancy } of held.values())
      if (tenancy.yielding && tenants.has(tenantOf(tenancy.key))) less(tenantOf(tenancy.key));
    return busy
      .map((tenancy) => ({ tenancy, count: less(tenantOf(tenancy.key)) }))
      .sort((a, b) => b.count - a.count);
  }

  /** The longest idle first, and the longest held. */
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

  /** Forgets sandboxes whose slot another sandbox has, or no sandbox wanted. */
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
