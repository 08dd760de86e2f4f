import { fleetQueuePrefix, redisKeys, type SandboxKey, sandboxKey, tenantOf } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { Queue, Worker } from "bullmq";
import { z } from "zod";
import { bullConnection } from "./connection.ts";
import type { MarkerWaits } from "./marker-waits.ts";

const prefix = fleetQueuePrefix;
const waitSeconds = 1;
/** A taker acknowledges an offer within a round trip or two. If it dies, the sweep offers the sandbox again after this time. */
const lockMs = 5_000;
/** Tenants whose turns are remembered for a target, and for how long after the last offer. A tenant that is forgotten counts as new. */
const tenantsRemembered = 10_000;
const turnsKeptMs = 86_400_000;
const offerMark = "o-";

const offerScript = new Script({
  name: "offer",
  file: new URL("../../lua/offer.lua", import.meta.url),
  parse: (reply) => z.literal([0, 1]).parse(reply) === 1,
});

/** The workers that an offer is for: a pool, on any host or on the one whose disk has the workspace. */
export interface OfferTarget {
  readonly pool: string;
  readonly home: string | undefined;
}

/** `offers`, `offers-gpu`, `offers@host-1`, `offers-gpu@host-1`. Names have no `@`, so no two targets share a queue. */
export function offerQueueName({ pool, home }: OfferTarget): string {
  return `offers${pool === "default" ? "" : `-${pool}`}${home === undefined ? "" : `@${home}`}`;
}

/** What our scripts and calls touch of BullMQ's layout of these queues. `test/offers.test.ts` compares it with the pinned version. */
function queueKey(
  target: OfferTarget,
  name: "wait" | "prioritized" | "pc" | "marker" | `o-${string}`,
): string {
  return `${prefix}:${offerQueueName(target)}:${name}`;
}

/**
 * Announces to workers that a sandbox has work and no holder. At most one offer per sandbox and target: its id is the sandbox's key.
 * Offers of a target rotate by tenant, then by sandbox: BullMQ's priorities are rounds in which each tenant has one turn (`offer.lua`).
 */
export class Offers {
  readonly #redis: Redis;
  readonly #queues = new Map<string, Queue>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** False: it is offered already, and keeps its turn. */
  async add(key: SandboxKey, target: OfferTarget): Promise<boolean> {
    const id = offerId(key);
    const keys = [
      ...[queueKey(target, id), queueKey(target, "prioritized"), queueKey(target, "pc")],
      ...[queueKey(target, "marker"), redisKeys.turns(offerQueueName(target))],
    ];
    const args = [id, tenantOf(key), JSON.stringify({ key }), Date.now(), tenantsRemembered, turnsKeptMs];
    return offerScript.run(this.#redis, keys, args);
  }

  /** As `add`. First removes an offer whose taker died before acknowledging it, because its id blocks a new one. */
  async addAgain(key: SandboxKey, target: OfferTarget): Promise<void> {
    if (await this.add(key, target)) return;
    const queue = this.#queue(target);
    try {
      const taken = await queue.getJob(offerId(key));
      if (!taken || !(await taken.isActive())) return;
      // BullMQ refuses while the taker's lock lasts. Then that worker still handles the offer.
      const removed = await taken.remove().then(
        () => true,
        () => false,
      );
      if (removed) await this.add(key, target);
    } catch (error) {
      // A BullMQ queue whose first call to Redis failed stays broken for ever.
      this.#drop(target, queue);
      throw error;
    }
  }

  async waiting(targets: readonly OfferTarget[]): Promise<number> {
    const counts = await Promise.all(
      targets.flatMap((target) => [
        // Offers of older versions; BullMQ takes them first.
        this.#redis.llen(queueKey(target, "wait")),
        this.#redis.zcard(queueKey(target, "prioritized")),
      ]),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Sandboxes that are offered, the next first. */
  async next(target: OfferTarget, count: number): Promise<SandboxKey[]> {
    const ids = await this.#redis.zrange(queueKey(target, "prioritized"), "0", String(count - 1));
    return ids.map((id) => sandboxKey.parse(id.slice(offerMark.length)));
  }

  /** Removes an offer that no worker has taken. The caller checks afterwards whether the sandbox still needs one. */
  async withdraw(key: SandboxKey, target: OfferTarget): Promise<void> {
    const queue = this.#queue(target);
    try {
      await queue.remove(offerId(key));
    } catch (error) {
      this.#drop(target, queue);
      throw error;
    }
  }

  /** How many offers are before this sandbox's, or undefined when it has none. */
  async before(key: SandboxKey, target: OfferTarget): Promise<number | undefined> {
    const [older, index, rank] = await Promise.all([
      this.#redis.llen(queueKey(target, "wait")),
      this.#redis.lpos(queueKey(target, "wait"), offerId(key)),
      this.#redis.zrank(queueKey(target, "prioritized"), offerId(key)),
    ]);
    if (index !== null) return older - 1 - index;
    return rank === null ? undefined : older + rank;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }

  #drop(target: OfferTarget, queue: Queue): void {
    const name = offerQueueName(target);
    if (this.#queues.get(name) !== queue) return;
    this.#queues.delete(name);
    queue.close().catch(() => {});
  }

  #queue(target: OfferTarget): Queue {
    const name = offerQueueName(target);
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new Queue(name, { connection: bullConnection(this.#redis), prefix, skipMetasUpdate: true });
      queue.on("error", () => {});
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

/** Prefixed, because BullMQ refuses an id of digits only. */
function offerId(key: SandboxKey): `o-${string}` {
  return `${offerMark}${key}`;
}

export interface Offer {
  readonly key: SandboxKey;
  /** Removes the offer. The caller checks afterwards whether the sandbox still needs one. */
  acknowledge(): Promise<void>;
  /** Puts it back where it was: this worker has no room for it. */
  putBack(): Promise<void>;
}

/** Takes offers of one target, one at a time, for one worker. */
export class OfferTaker {
  readonly #redis: Redis;
  readonly #target: OfferTarget;
  readonly #worker: Worker;
  readonly #token: string;

  constructor(redis: Redis, token: string, target: OfferTarget, waits: MarkerWaits) {
    this.#redis = redis;
    this.#target = target;
    this.#token = token;
    const options = {
      connection: bullConnection(redis),
      prefix,
      autorun: false,
      drainDelay: waitSeconds,
      lockDuration: lockMs,
      skipStalledCheck: true,
      skipLockRenewal: true,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    };
    this.#worker = new Worker(offerQueueName(target), undefined, options, waits.backend);
    this.#worker.on("error", () => {});
  }

  async next(): Promise<Offer | undefined> {
    const job = await this.#worker.getNextJob(this.#token);
    if (!job) return undefined;
    return {
      key: sandboxKey.parse((job.data as { key: unknown }).key),
      acknowledge: async () => {
        await job.moveToCompleted("taken", this.#token, false);
      },
      putBack: async () => {
        await job.moveToWait(this.#token);
        // BullMQ wakes no worker for a job with a priority that is put back.
        await this.#redis.zadd(queueKey(this.#target, "marker"), 0, "0");
      },
    };
  }

  async close(): Promise<void> {
    await this.#worker.close(true);
  }
}
