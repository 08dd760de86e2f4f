import { setTimeout as sleep } from "node:timers/promises";
import { redisKeys } from "@berth/protocol";
import { blockingDuplicate, onReconnect, type Redis } from "@berth/redis";
import { z } from "zod";

/** Shorter than any lease. The reader notices within this time that it was stopped. */
const blockSeconds = 2;
/** Redis answers every read within `blockSeconds`. After this much silence the connection is reopened. */
const silentMs = 5_000;
/** The reply of BZMPOP: the key, and each member with its score. */
const wokenIn = z
  .tuple([z.string(), z.array(z.tuple([z.string(), z.unknown()]))])
  .nullable()
  .transform((reply) => reply?.[1] ?? []);
/** Pause after an error, as while Redis is away. */
const restMs = 250;
/** How many woken sandboxes one call reads. */
const pageSize = 100;

/**
 * Wakes those sandboxes of one worker that got a job. One blocking connection, however many sandboxes the worker holds.
 * A wake-up may be lost with its connection: a holder looks at its queue within a lease anyway.
 */
export class Wakes {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #listeners = new Map<string, () => void>();
  #reader: Redis | undefined;
  #stopped = false;

  constructor(redis: Redis, instance: string) {
    this.#redis = redis;
    this.#key = redisKeys.wake(instance);
  }

  /** Calls `onWake` for the sandbox until the returned function is called. The connection is made when the first one listens. */
  listen(sandbox: string, onWake: () => void): () => void {
    this.#listeners.set(sandbox, onWake);
    if (this.#reader === undefined && !this.#stopped) {
      const reader = blockingDuplicate(this.#redis, silentMs);
      // After a reconnection: wake-ups may be lost with the old connection.
      reader.once("ready", () => onReconnect(reader, () => this.#wakeAll()));
      this.#reader = reader;
      void this.#read(reader);
    }
    return () => {
      if (this.#listeners.get(sandbox) === onWake) this.#listeners.delete(sandbox);
    };
  }

  stop(): void {
    this.#stopped = true;
    this.#reader?.disconnect();
  }

  async #read(reader: Redis): Promise<void> {
    while (!this.#stopped) {
      try {
        const popped = await reader.bzmpop(blockSeconds, 1, this.#key, "MIN", "COUNT", pageSize);
        for (const [sandbox] of wokenIn.parse(popped)) this.#wake(sandbox);
      } catch {
        if (!this.#stopped) await sleep(restMs);
      }
    }
  }

  #wakeAll(): void {
    for (const onWake of this.#listeners.values()) onWake();
  }

  #wake(sandbox: string): void {
    this.#listeners.get(sandbox)?.();
  }
}
