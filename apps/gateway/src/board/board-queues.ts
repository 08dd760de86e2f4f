import type { Berth } from "@berth/client";
import {
  attemptOf,
  type BoardQueueId,
  boardQueue,
  jobIdOf,
  offerQueueName,
  recentSandboxes,
} from "@berth/ledger";
import { type SandboxKey, sharedOwner, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { LRUCache } from "lru-cache";

/** Refresh interval of the board, only while a page is open. */
const freshMs = 3_000;
/** Bounds the recently used sandboxes. The dashboard sends about six requests for each queue it shows, every few seconds. */
const recentMost = 20;
/** Bounds the sandboxes that are shown because an admin searched for their tenant. */
const foundMost = 30;
const foundKeptMs = 600_000;
/** Bounds the sandboxes that one search adds. */
const sandboxesPerTenant = 10;

interface Shown {
  readonly queueId: BoardQueueId;
  readonly adapter: BullMQAdapter;
  readonly close: () => void;
}

/**
 * The queues that the dashboard shows: offers, schedule, dead letters, and the sandboxes that were used lately or searched for.
 * Showing all sandboxes would mean as many queues as there are tenants. Bull Board only reads them; `changes.ts` handles changes.
 */
export class BoardQueues {
  readonly #redis: Redis;
  readonly #berth: Berth;
  readonly #isReadOnly: boolean;
  readonly #shown = new Map<string, Shown>();
  readonly #found = new LRUCache<SandboxKey, true>({ max: foundMost, ttl: foundKeptMs });
  #known = 0;
  #atMs = Number.NEGATIVE_INFINITY;
  /** The refresh in progress. Requests that come meanwhile wait for it. */
  #refresh: Promise<void> | undefined;
  /** Counts the searches. A refresh during which it grows starts again. */
  #searches = 0;
  #isClosed = false;

  constructor(redis: Redis, berth: Berth, options: { readonly isReadOnly: boolean }) {
    this.#redis = redis;
    this.#berth = berth;
    this.#isReadOnly = options.isReadOnly;
  }

  /** The queues to show, refreshed if the last refresh is older than `freshMs`. */
  async adapters(): Promise<BullMQAdapter[]> {
    if (performance.now() - this.#atMs > freshMs) {
      this.#refresh ??= this.#refreshQueues().finally(() => {
        this.#refresh = undefined;
      });
      await this.#refresh;
    }
    return [...this.#shown.values()].map(({ adapter }) => adapter);
  }

  /** One line about which sandboxes are shown. */
  get summary(): string {
    const shown = this.sandboxes.length;
    if (shown >= this.#known) return `All ${shown} sandboxes`;
    return `${shown} of ${this.#known} sandboxes: the ${recentMost} used last, and those found by tenant`;
  }

  /** Keys of the sandboxes that are shown. */
  get sandboxes(): readonly SandboxKey[] {
    return [...this.#shown.values()].flatMap(({ queueId }) =>
      queueId.kind === "sandbox" ? [queueId.key] : [],
    );
  }

  /** The queue that is shown under a name; undefined if there is none. */
  queueIdOf(name: string): BoardQueueId | undefined {
    return this.#shown.get(name)?.queueId;
  }

  /** Shows a tenant's sandboxes for ten minutes. Returns the name of the one that was used last. */
  async find(tenant: string): Promise<string | undefined> {
    const isName = tenant === sharedOwner || tenantId.safeParse(tenant).success;
    if (!isName) return undefined;
    const known = await this.#berth.sandboxes({ tenant, limit: sandboxesPerTenant });
    for (const { key } of known) this.#found.set(key, true);
    this.#atMs = Number.NEGATIVE_INFINITY;
    this.#searches++;
    return known[0] && labelOf({ kind: "sandbox", key: known[0].key });
  }

  close(): void {
    this.#isClosed = true;
    this.#setShown([]);
  }

  async #refreshQueues(): Promise<void> {
    for (;;) {
      const before = this.#searches;
      const queueIds = await this.#wanted();
      if (this.#isClosed) return;
      if (this.#searches !== before) continue;
      this.#setShown(queueIds);
      this.#atMs = performance.now();
      return;
    }
  }

  async #wanted(): Promise<BoardQueueId[]> {
    const workers = await this.#berth.workers();
    const offers = new Set([offerQueueName({ pool: "default", home: undefined })]);
    for (const { pools, host } of workers) {
      for (const pool of pools) {
        offers.add(offerQueueName({ pool, home: undefined }));
        offers.add(offerQueueName({ pool, home: host }));
      }
    }
    const recent = await recentSandboxes(this.#redis, recentMost);
    this.#known = recent.known;
    const keys = new Set([...recent.keys, ...this.#found.keys()]);
    return [
      ...[...offers].sort().map((name): BoardQueueId => ({ kind: "offers", name })),
      { kind: "schedule" },
      { kind: "dead" },
      ...[...keys].sort().map((key): BoardQueueId => ({ kind: "sandbox", key })),
    ];
  }

  #setShown(queueIds: readonly BoardQueueId[]): void {
    const wanted = new Map(queueIds.map((queueId) => [labelOf(queueId), queueId]));
    for (const [label, { close }] of this.#shown) {
      if (wanted.has(label)) continue;
      this.#shown.delete(label);
      close();
    }
    for (const [label, queueId] of wanted) {
      if (!this.#shown.has(label)) this.#shown.set(label, this.#show(label, queueId));
    }
  }

  #show(label: string, queueId: BoardQueueId): Shown {
    const queue = boardQueue(this.#redis, queueId);
    const canRetry = !this.#isReadOnly && (queueId.kind === "dead" || queueId.kind === "sandbox");
    const adapter = new BoardQueueAdapter(label, queueId, this.#berth, queue as never, {
      delimiter: ":",
      readOnlyMode: !canRetry,
      allowRetries: canRetry,
      description: descriptions[queueId.kind],
    });
    return { queueId, adapter, close: () => void queue.close().catch(() => {}) };
  }
}

/** All sandboxes' queues have the same name in BullMQ. On the board each has a name of its own. */
class BoardQueueAdapter extends BullMQAdapter {
  readonly #name: string;
  readonly #queueId: BoardQueueId;
  readonly #berth: Berth;
  override readonly allowCompletedRetries = false;

  constructor(
    name: string,
    queueId: BoardQueueId,
    berth: Berth,
    ...rest: ConstructorParameters<typeof BullMQAdapter>
  ) {
    super(...rest);
    this.#name = name;
    this.#queueId = queueId;
    this.#berth = berth;
  }

  override getName(): string {
    return this.#name;
  }

  /** A job's output is in its events, and expires with them. */
  override async getJobLogs(id: string): Promise<string[]> {
    if (this.#queueId.kind === "dead") return await this.#berth.jobs.lastLines(id.replace(/^d-/, ""));
    if (this.#queueId.kind !== "sandbox") return [];
    return await this.#berth.jobs.lastLines(jobIdOf(id), attemptOf(id));
  }
}

const descriptions = {
  offers:
    "Sandboxes that have work and no holder, under Prioritized in the order of their tenants' turns. Empty while there are enough workers.",
  schedule: "Jobs that are not due yet, jobs that run again, and the ticks of schedules.",
  dead: "Dead letters: failed jobs that an operator should look at. Retry runs one again, under a new id.",
  sandbox:
    "One sandbox's own queue. What did not succeed is under Failed for a day; its last lines are under Logs. Retry runs it again, under a new id.",
} as const;

/** The board groups queues by the part of the name before the colon. */
function labelOf(queueId: BoardQueueId): string {
  switch (queueId.kind) {
    case "offers":
      return `fleet:${queueId.name}`;
    case "schedule":
      return "fleet:schedule";
    case "dead":
      return "fleet:dead letters";
    case "sandbox":
      return `tenants:${queueId.key}`;
  }
}
