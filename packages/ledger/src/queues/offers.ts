import { fleetQueuePrefix, type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue, Worker } from "bullmq";
import { bullConnection } from "./connection.ts";
import { OneWait } from "./one-wait.ts";

const prefix = fleetQueuePrefix;
const waitSeconds = 1;
/** An offer is settled within a round trip or two; one whose taker died is offered again by the sweep after this. */
const lockMs = 5_000;

/** The workers that an offer is for: a pool, on any host or on the one whose disk has the workspace. */
export interface OfferPlace {
  readonly pool: string;
  readonly home: string | undefined;
}

/** `offers`, `offers-gpu`, `offers@host-1`, `offers-gpu@host-1`. Names have no `@`, so no two places share a queue. */
export function offerQueueName({ pool, home }: OfferPlace): string {
  return `offers${pool === "default" ? "" : `-${pool}`}${home === undefined ? "" : `@${home}`}`;
}

/** Announces to workers that a sandbox has work and no holder. At most one offer per sandbox and place: its id is the sandbox's key. */
export class Offers {
  readonly #redis: Redis;
  readonly #queues = new Map<string, Queue>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async add(key: SandboxKey, place: OfferPlace): Promise<void> {
    // Removed when settled, or its id would block the next offer.
    const options = { jobId: offerId(key), removeOnComplete: true, removeOnFail: true };
    const queue = this.#queue(place);
    try {
      await queue.add("offer", { key }, options);
    } catch (error) {
      // A BullMQ queue whose first call to Redis failed stays broken for ever.
      this.#drop(place, queue);
      throw error;
    }
  }

  /** As `add`, past an offer whose taker died before settling it: while it exists, its id blocks any other. */
  async addAgain(key: SandboxKey, place: OfferPlace): Promise<void> {
    const taken = await this.#queue(place).getJob(offerId(key));
    if (taken && (await taken.isActive())) {
      // Refused while its taker's lock lasts: then a worker handles it.
      const removed = await taken.remove().then(
        () => true,
        () => false,
      );
      if (!removed) return;
    }
    await this.add(key, place);
  }

  async waiting(places: readonly OfferPlace[]): Promise<number> {
    const counts = await Promise.all(places.map((place) => this.#queue(place).getWaitingCount()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** How many offers are before this sandbox's, or undefined when it has none. */
  async before(key: SandboxKey, place: OfferPlace): Promise<number | undefined> {
    const list = `${prefix}:${offerQueueName(place)}:wait`;
    const index = await this.#redis.lpos(list, offerId(key));
    return index === null ? undefined : (await this.#redis.llen(list)) - 1 - index;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
  }

  #drop(place: OfferPlace, queue: Queue): void {
    const name = offerQueueName(place);
    if (this.#queues.get(name) !== queue) return;
    this.#queues.delete(name);
    queue.close().catch(() => {});
  }

  #queue(place: OfferPlace): Queue {
    const name = offerQueueName(place);
    let queue = this.#queues.get(name);
    if (!queue) {
      queue = new Queue(name, { connection: bullConnection(this.#redis), prefix });
      queue.on("error", () => {});
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

/** With a letter in front: BullMQ accepts no id of digits alone. */
function offerId(key: SandboxKey): string {
  return `o-${key}`;
}

export interface Offer {
  readonly key: SandboxKey;
  /** Removes the offer. The caller checks afterwards whether the sandbox still needs one. */
  settle(): Promise<void>;
  /** Puts it back where it was: this worker has no room for it. */
  putBack(): Promise<void>;
}

/** Takes offers of one place, one at a time, for one worker. */
export class OfferTaker {
  readonly #worker: Worker;
  readonly #token: string;
  readonly #wait = new OneWait();

  constructor(redis: Redis, token: string, place: OfferPlace) {
    this.#token = token;
    this.#worker = new Worker(offerQueueName(place), undefined, {
      connection: bullConnection(redis),
      prefix,
      autorun: false,
      drainDelay: waitSeconds,
      lockDuration: lockMs,
      skipStalledCheck: true,
      skipLockRenewal: true,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    });
    this.#worker.on("error", () => {});
  }

  async next(): Promise<Offer | undefined> {
    const job = await this.#wait.for(() => this.#worker.getNextJob(this.#token));
    if (!job) return undefined;
    return {
      key: sandboxKey.parse((job.data as { key: unknown }).key),
      settle: async () => {
        await job.moveToCompleted("taken", this.#token, false);
      },
      putBack: async () => {
        await job.moveToWait(this.#token);
      },
    };
  }

  async close(): Promise<void> {
    this.#wait.end();
    await this.#worker.close(true);
  }
}
