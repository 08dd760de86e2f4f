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
/** Sandboxes shown because they were used lately. The dashboard asks each queue it shows half a dozen things every few seconds. */
const recentMost = 20;
/** Sandboxes shown because a page asked for their tenant. */
const foundMost = 30;
const foundKeptMs = 600_000;
/** Looked through for a tenant's sandboxes. */
const sandboxesPerTenant = 10;

interface Shown {
  readonly queueId: BoardQueueId;
  readonly adapter: BullMQAdapter;
  readonly close: () => void;
}

/**
 * The queues the dashboard shows: offers, schedule, dead letters, and the sandboxes that were used lately or asked for. They
 * come and go; all of them would be as many as there are tenants. Bull Board only reads them: what is changed is done in `changes.ts`.
 */
export class BoardQueues {
  readonly #redis: Redis;
  readonly #berth: Berth;
  readonly #isReadOnly: boolean;
  readonly #shown = new Map<string, Shown>();
  readonly #found = new LRUCache<SandboxKey, true>({ max: foundMost, ttl: foundKeptMs });
  #known = 0;
  #atMs = Number.NEGATIVE_INFINITY;
  /** What is under way: pages that ask meanwhile wait for it, too. */
  #look: Promise<void> | undefined;
  /** Counts what changes the wanted ones; a look that began before does not count. */
  #changes = 0;
  #isClosed = false;

  constructor(redis: Redis, berth: Berth, options: { readonly isReadOnly: boolean }) {
    this.#redis = redis;
    this.#berth = berth;
    this.#isReadOnly = options.isReadOnly;
  }

  /** The shown queues now; looks again when the last look was a while ago. */
  async adapters(): Promise<BullMQAdapter[]> {
    if (performance.now() - this.#atMs > freshMs) {
      this.#look ??= this.#lookAgain().finally(() => {
        this.#look = undefined;
      });
      await this.#look;
    }
    return [...this.#shown.values()].map(({ adapter }) => adapter);
  }

  /** Which sandboxes those are, for people. */
  get summary(): string {
    const shown = this.sandboxes.length;
    if (shown >= this.#known) return `All ${shown} sandboxes`;
    return `${shown} of ${this.#known} sandboxes: the ${recentMost} used last, and those found by tenant`;
  }

  /** Whose sandboxes are shown, by sandbox. */
  get sandboxes(): readonly SandboxKey[] {
    return [...this.#shown.values()].flatMap(({ queueId }) =>
      queueId.kind === "sandbox" ? [queueId.key] : [],
    );
  }

  /** What is shown under a name; undefined if nothing is. */
  queueIdOf(name: string): BoardQueueId | undefined {
    return this.#shown.get(name)?.queueId;
  }

  /** Shows a tenant's sandboxes for a while. Gives the name of the one that was used last. */
  async find(tenant: string): Promise<string | undefined> {
    const isName = tenant === sharedOwner || tenantId.safeParse(tenant).success;
    if (!isName) return undefined;
    const known = await this.#berth.sandboxes({ tenant, limit: sandboxesPerTenant });
    for (const { key } of known) this.#found.set(key, true);
    this.#atMs = Number.NEGATIVE_INFINITY;
    this.#changes++;
    return known[0] && labelOf({ kind: "sandbox", key: known[0].key });
  }

  close(): void {
    this.#isClosed = true;
    this.#arrange([]);
  }

  async #lookAgain(): Promise<void> {
    for (;;) {
      const before = this.#changes;
      const queueIds = await this.#wanted();
      if (this.#isClosed) return;
      if (this.#changes !== before) continue;
      this.#arrange(queueIds);
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

  #arrange(queueIds: readonly BoardQueueId[]): void {
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

/** All sandboxes' queues have the same name in BullMQ; on the board each has the one it is shown under. */
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

/** The board groups by what is before the colon. */
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
