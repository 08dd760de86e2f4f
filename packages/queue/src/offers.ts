import { type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Queue, Worker } from "bullmq";
import { bullConnection } from "./connection.ts";

const queueName = "offers";
const prefix = "berth";
const waitSeconds = 1;
/** An offer is settled within a round trip or two; one whose taker died is offered again by the sweep after this. */
const lockMs = 5_000;

/** "This sandbox has work and nobody holds it." At most one offer per sandbox: its id is the sandbox's key. */
export class Offers {
  readonly #queue: Queue;

  constructor(redis: Redis) {
    this.#queue = new Queue(queueName, { connection: bullConnection(redis), prefix });
    this.#queue.on("error", () => {});
  }

  async add(key: SandboxKey): Promise<void> {
    // Removed when settled, or its id would keep out the next.
    const options = { jobId: offerId(key), removeOnComplete: true, removeOnFail: true };
    await this.#queue.add("offer", { key }, options);
  }

  /** As `add`, past an offer whose taker died before settling it: while it lies there, its id keeps any other out. */
  async addAgain(key: SandboxKey): Promise<void> {
    const taken = await this.#queue.getJob(offerId(key));
    if (taken && (await taken.isActive())) {
      // Refused while its taker's lock lasts: then somebody is at it.
      const removed = await taken.remove().then(
        () => true,
        () => false,
      );
      if (!removed) return;
    }
    await this.add(key);
  }

  waiting(): Promise<number> {
    return this.#queue.getWaitingCount();
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

/** With a letter before it: BullMQ takes no id of digits alone. */
function offerId(key: SandboxKey): string {
  return `o-${key}`;
}

export interface Offer {
  readonly key: SandboxKey;
  /** Removes the offer. Whoever does looks again afterwards whether the sandbox still needs one. */
  settle(): Promise<void>;
}

/** Takes offers, one at a time, for one worker. */
export class OfferTaker {
  readonly #worker: Worker;
  readonly #token: string;

  constructor(redis: Redis, token: string) {
    this.#token = token;
    this.#worker = new Worker(queueName, undefined, {
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
    const job = await this.#worker.getNextJob(this.#token);
    if (!job) return undefined;
    return {
      key: sandboxKey.parse((job.data as { key: unknown }).key),
      settle: async () => {
        await job.moveToCompleted("taken", this.#token, false);
      },
    };
  }

  async close(): Promise<void> {
    await this.#worker.close(true);
  }
}
