import type { TurnsPort } from "@berth/tenancy";

/** The tenant that takes turns. */
export interface TurnTaker {
  readonly tenant: string;
  /** How many turns it gets for each one of a tenant of weight 1. Asked each time, since a profile can change. */
  readonly weight: () => number;
}

interface Waiter {
  readonly startAt: number;
  readonly go: () => void;
}

/** How many tenants' last turns are remembered. */
const mostRemembered = 10_000;

/**
 * Bounds how many jobs run in this worker at once. Tenants share the turns by their weights: start-time fair queueing. A turn of a
 * tenant costs it 1/weight of virtual time, and the waiting job whose tenant has spent the least goes next. A tenant that was away
 * saves nothing up. Jobs of one tenant go first come, first served.
 */
export class Turns {
  readonly #most: number;
  readonly #waiting: Waiter[] = [];
  /** Virtual time: where the last turn began. */
  #now = 0;
  /** By tenant: the virtual time when its next turn may begin. */
  readonly #spent = new Map<string, number>();
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get taken(): number {
    return this.#taken;
  }

  of(taker: TurnTaker): TurnsPort {
    return { take: (signal) => this.#take(taker, signal), takeNow: () => this.#takeNow(taker) };
  }

  async #take(taker: TurnTaker, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const now = this.#takeNow(taker);
    if (now) return now;
    await this.#wait(this.#charge(taker), signal);
    return this.#turn();
  }

  #takeNow(taker: TurnTaker): (() => void) | undefined {
    if (this.#taken >= this.#most) return undefined;
    this.#taken++;
    this.#now = this.#charge(taker);
    return this.#turn();
  }

  /** Where the tenant's next turn begins in virtual time. */
  #charge({ tenant, weight }: TurnTaker): number {
    const startAt = Math.max(this.#now, this.#spent.get(tenant) ?? 0);
    if (this.#spent.size >= mostRemembered) this.#forgetPast();
    this.#spent.set(tenant, startAt + 1 / Math.max(1, weight()));
    return startAt;
  }

  /** Removes entries behind the virtual time: they have no effect any more. */
  #forgetPast(): void {
    for (const [tenant, spentTo] of this.#spent) if (spentTo <= this.#now) this.#spent.delete(tenant);
  }

  #turn(): () => void {
    let over = false;
    return () => {
      if (over) return;
      over = true;
      // The turn goes straight to a waiting job: otherwise a newcomer could take it first.
      const next = this.#next();
      if (next) next.go();
      else this.#taken--;
    };
  }

  #next(): Waiter | undefined {
    let first: Waiter | undefined;
    for (const waiter of this.#waiting) if (!first || waiter.startAt < first.startAt) first = waiter;
    if (!first) return undefined;
    this.#waiting.splice(this.#waiting.indexOf(first), 1);
    this.#now = Math.max(this.#now, first.startAt);
    return first;
  }

  #wait(startAt: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = {
      startAt,
      go: () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      },
    };
    const onAbort = () => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(waiter);
    return promise;
  }
}
