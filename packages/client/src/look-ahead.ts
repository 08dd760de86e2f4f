import type { JobOrder } from "./order.ts";

export interface Ahead {
  readonly index: number;
  readonly order: JobOrder;
}

/**
 * Orders read ahead, by sandbox. Without it, a batch for many tenants has one or two jobs of each sandbox in flight. That needs more
 * sandboxes than the fleet has slots, and each sandbox is evicted and started again between its jobs.
 *
 * `next` prefers an order whose sandbox has jobs in flight, but less than `share`; then one of a sandbox without any; then one
 * of the sandbox with the fewest. Orders of a sandbox stay in order.
 */
export class LookAhead {
  readonly #share: number;
  /** Waiting orders; sandboxes in the order in which their first order was read. */
  readonly #waiting = new Map<string, Ahead[]>();
  readonly #inFlight = new Map<string, number>();
  #size = 0;

  constructor(share: number) {
    this.#share = share;
  }

  get size(): number {
    return this.#size;
  }

  add(ahead: Ahead): void {
    const sandbox = sandboxOf(ahead.order);
    const waiting = this.#waiting.get(sandbox);
    if (waiting) waiting.push(ahead);
    else this.#waiting.set(sandbox, [ahead]);
    this.#size++;
  }

  /** Takes the next order; it counts as in flight until `ended`. */
  take(): Ahead | undefined {
    const sandbox = this.#next();
    const waiting = sandbox === undefined ? undefined : this.#waiting.get(sandbox);
    const taken = waiting?.shift();
    if (sandbox === undefined || taken === undefined) return undefined;
    if (waiting?.length === 0) this.#waiting.delete(sandbox);
    this.#inFlight.set(sandbox, this.#countOf(sandbox) + 1);
    this.#size--;
    return taken;
  }

  ended({ order }: Ahead): void {
    const sandbox = sandboxOf(order);
    const left = this.#countOf(sandbox) - 1;
    if (left > 0) this.#inFlight.set(sandbox, left);
    else this.#inFlight.delete(sandbox);
  }

  clear(): void {
    this.#waiting.clear();
    this.#size = 0;
  }

  #next(): string | undefined {
    let fewest: string | undefined;
    let fresh: string | undefined;
    for (const sandbox of this.#waiting.keys()) {
      const count = this.#countOf(sandbox);
      if (count === 0) fresh ??= sandbox;
      else if (fewest === undefined || count < this.#countOf(fewest)) fewest = sandbox;
    }
    if (fewest !== undefined && (fresh === undefined || this.#countOf(fewest) < this.#share)) return fewest;
    return fresh;
  }

  #countOf(sandbox: string): number {
    return this.#inFlight.get(sandbox) ?? 0;
  }
}

/** The sandbox of an order, even if the order proves invalid. */
function sandboxOf({ scope = "tenant", tenant, session = "main", agent = "default" }: JobOrder): string {
  const parts: Readonly<Record<string, readonly string[]>> = {
    session: [tenant, session],
    agent: [tenant, agent],
    shared: [],
  };
  return JSON.stringify([scope, ...(parts[scope] ?? [tenant])]);
}
