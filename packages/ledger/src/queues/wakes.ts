import { setTimeout as sleep } from "node:timers/promises";
import { redisKeys } from "@berth/protocol";
import { blockingDuplicate, onReconnect, type Redis } from "@berth/redis";

/** Shorter than any lease: the reader notices within this time that it was stopped. */
const blockSeconds = 2;
/** Redis answers every read within `blockSeconds`. After this much silence the connection is made anew. */
const silentMs = 5_000;
/** After an error, as while Redis is away. */
const restMs = 250;
/** Of many woken sandboxes, those read in one call. */
const pageSize = 100;

/**
 * Wakes the sandboxes of one worker that were given a job. One blocking connection, however many sandboxes the worker holds.
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

  /** Calls `onWake` for the sandbox until it is told to stop. The connection is made when the first one listens. */
  listen(sandbox: string, onWake: () => void): () => void {
    this.#listeners.set(sandbox, onWake);
    if (this.#reader === undefined && !this.#stopped) {
      const reader = blockingDuplicate(this.#redis, silentMs);
      // Connected again: what was woken meanwhile may be lost with the old connection.
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
        const first = await reader.bzpopmin(this.#key, blockSeconds);
        if (first === null) continue;
        this.#wake(first[1]);
        const others = await reader.zpopmin(this.#key, pageSize);
        for (let index = 0; index < others.length; index += 2) this.#wake(others[index] ?? "");
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
