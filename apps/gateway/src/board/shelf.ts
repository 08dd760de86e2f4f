import type { Berth } from "@berth/client";
import { type BoardPlace, boardQueue, offerQueueName } from "@berth/ledger";
import { redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { LRUCache } from "lru-cache";

/** What is shown is looked at again after this long, and only while somebody looks. */
const freshMs = 3_000;
/** Sandboxes shown because they were used lately. The dashboard asks each queue it shows half a dozen things every few seconds. */
const recentMost = 20;
/** Sandboxes shown because somebody asked for their tenant. */
const foundMost = 30;
const foundKeptMs = 600_000;
/** Looked through for a tenant's sandboxes. */
const sandboxesPerTenant = 10;

export interface Shown {
  readonly name: string;
  readonly adapter: BullMQAdapter;
}

/**
 * The queues the dashboard shows: offers, schedule, dead letters, and the sandboxes that were used lately or asked for. They
 * come and go; all of them would be as many as there are tenants.
 *
 * Only dead letters can be changed from the dashboard. What waits in a sandbox's queue is promised to end in exactly one
 * terminal record, and an offer is nothing but a hint: neither bears a hand that knows only BullMQ.
 */
export class Shelf {
  readonly #redis: Redis;
  readonly #berth: Berth;
  readonly #readOnly: boolean;
  readonly #shown = new Map<string, { readonly adapter: BullMQAdapter; readonly close: () => void }>();
  readonly #found = new LRUCache<SandboxKey, true>({ max: foundMost, ttl: foundKeptMs });
  #atMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis, berth: Berth, options: { readonly readOnly: boolean }) {
    this.#redis = redis;
    this.#berth = berth;
    this.#readOnly = options.readOnly;
  }

  /** What is on it now; looks again when that was a while ago. */
  async adapters(): Promise<BullMQAdapter[]> {
    if (performance.now() - this.#atMs > freshMs) {
      this.#atMs = performance.now();
      this.#arrange(await this.#wanted());
    }
    return [...this.#shown.values()].map(({ adapter }) => adapter);
  }

  /** Shows a tenant's sandboxes for a while. Gives how many there are. */
  async find(tenant: string): Promise<number> {
    const known = await this.#berth.sandboxes({ tenant, limit: sandboxesPerTenant });
    for (const { key } of known) this.#found.set(key, true);
    this.#atMs = Number.NEGATIVE_INFINITY;
    return known.length;
  }

  close(): void {
    this.#arrange([]);
  }

  async #wanted(): Promise<BoardPlace[]> {
    const workers = await this.#berth.workers();
    const offers = new Set([offerQueueName({ pool: "default", home: undefined })]);
    for (const { pools, host } of workers) {
      for (const pool of pools) {
        offers.add(offerQueueName({ pool, home: undefined }));
        offers.add(offerQueueName({ pool, home: host }));
      }
    }
    const recent = await this.#redis.zrevrange(redisKeys.sandboxes, 0, recentMost - 1);
    const keys = new Set([...recent.map((key) => sandboxKey.parse(key)), ...this.#found.keys()]);
    return [
      ...[...offers].sort().map((name): BoardPlace => ({ kind: "offers", name })),
      { kind: "schedule" },
      { kind: "dead" },
      ...[...keys].sort().map((key): BoardPlace => ({ kind: "sandbox", key })),
    ];
  }

  #arrange(places: readonly BoardPlace[]): void {
    const wanted = new Map(places.map((place) => [labelOf(place), place]));
    for (const [label, { close }] of this.#shown) {
      if (wanted.has(label)) continue;
      this.#shown.delete(label);
      close();
    }
    for (const [label, place] of wanted) {
      if (!this.#shown.has(label)) this.#shown.set(label, this.#show(label, place));
    }
  }

  #show(label: string, place: BoardPlace) {
    const queue = boardQueue(this.#redis, place);
    const changeable = place.kind === "dead" && !this.#readOnly;
    const adapter = new NamedAdapter(label, queue as never, {
      delimiter: ":",
      readOnlyMode: !changeable,
      allowRetries: changeable,
      description: descriptions[place.kind],
    });
    return { adapter, close: () => void queue.close().catch(() => {}) };
  }
}

/** All sandboxes' queues have the same name in BullMQ; on the board each has the one it is shown under. */
class NamedAdapter extends BullMQAdapter {
  readonly #name: string;

  constructor(name: string, ...rest: ConstructorParameters<typeof BullMQAdapter>) {
    super(...rest);
    this.#name = name;
  }

  override getName(): string {
    return this.#name;
  }
}

const descriptions = {
  offers: "Sandboxes that have work and no holder. Empty while there are enough workers.",
  schedule: "Jobs that are not due yet, jobs that run again, and the ticks of schedules.",
  dead: "Jobs that ended badly for a reason somebody should look at. Retry runs one again, under a new id.",
  sandbox: "One sandbox's own queue.",
} as const;

/** The board groups by what is before the colon. */
function labelOf(place: BoardPlace): string {
  switch (place.kind) {
    case "offers":
      return `fleet:${place.name}`;
    case "schedule":
      return "fleet:schedule";
    case "dead":
      return "fleet:dead letters";
    case "sandbox":
      return `tenants:${place.key}`;
  }
}
