import { type Acceptance, Fault } from "@berth/protocol";
import type { Redis } from "ioredis";
import { OneAfterAnother } from "./one-after-another.ts";
import { nodeOf } from "./topology.ts";

/** Replicas answer within milliseconds. A vanished replica counts as connected until its primary's `repl-timeout`. */
const waitMs = 1_000;
/** Cache time of the replica count. */
const countedForMs = 1_000;
/** A slot that moves or fails over gets its new primary within this time. */
const triesMost = 5;

const attached = new WeakMap<Redis, Replicated>();

/**
 * Makes writes that count only once replicas have them, so that no primary's death loses them.
 *
 * Each write is followed by WAIT on a connection of its own. Replicas acknowledge per connection, so writes sent together wait
 * once. A write and its WAIT use the same socket: after a reconnection, a new primary could acknowledge a write it never got. An
 * unacknowledged write may have been made, so each must be idempotent.
 */
export class Replicated {
  readonly #redis: Redis;
  readonly #least: number;
  readonly #waits = new WeakMap<Redis, Waits>();

  private constructor(redis: Redis, { replicas }: Acceptance) {
    this.#redis = redis;
    this.#least = replicas;
  }

  /** Sends the writes of `redis` through `own` from now on, and closes `own` with it. */
  static attach(redis: Redis & { companion?: Redis }, own: Redis, acceptance: Acceptance): void {
    redis.companion = own;
    attached.set(redis, new Replicated(own, acceptance));
  }

  /** Undefined if the primary's acknowledgement suffices. */
  static of(redis: Redis): Replicated | undefined {
    return attached.get(redis);
  }

  /** Runs a write on the primary that owns `key`. */
  async make<R>(key: string, step: (primary: Redis) => Promise<R>): Promise<R> {
    for (let tries = 1; ; tries++) {
      const primary = nodeOf(this.#redis, key);
      try {
        if (primary) return await this.#makeOn(primary, step);
      } catch (error) {
        if (tries >= triesMost || !isElsewhere(error)) throw error;
      }
      // On a cluster this call follows redirections and so finds the primary. It waits for one like any call.
      await this.#redis.exists(key);
    }
  }

  async #makeOn<R>(primary: Redis, step: (primary: Redis) => Promise<R>): Promise<R> {
    const reply = await step(primary);
    const { stream } = primary;
    const waits = this.#waits.get(primary) ?? new Waits(primary, this.#least);
    this.#waits.set(primary, waits);
    const { acknowledged, wanted } = await waits.next();
    if (primary.stream !== stream) throw unreplicated("the connection was made anew before they answered");
    if (acknowledged < wanted) throw unreplicated(`${acknowledged} of ${wanted} did within ${waitMs} ms`);
    return reply;
  }
}

interface Waited {
  readonly acknowledged: number;
  readonly wanted: number;
}

/** WAIT on one connection. */
class Waits {
  readonly #primary: Redis;
  readonly #least: number;
  readonly #waits = new OneAfterAnother(() => this.#wait());
  #counted: { readonly replicas: number; readonly atMs: number; readonly stream: object } | undefined;

  constructor(primary: Redis, least: number) {
    this.#primary = primary;
    this.#least = least;
  }

  /** Covers every answer received on the connection before this call. */
  next(): Promise<Waited> {
    return this.#waits.next();
  }

  async #wait(): Promise<Waited> {
    let wanted = Math.max(this.#least, await this.#connected());
    const acknowledged = await this.#primary.wait(wanted, waitMs);
    if (acknowledged < wanted) {
      // A replica may have left since the count.
      this.#counted = undefined;
      wanted = Math.max(this.#least, await this.#connected());
    }
    return { acknowledged, wanted };
  }

  async #connected(): Promise<number> {
    const { stream } = this.#primary;
    const nowMs = performance.now();
    const counted = this.#counted;
    const isFresh = counted?.stream === stream && nowMs - counted.atMs < countedForMs;
    // The first replica must acknowledge as soon as it connects: it may be promoted.
    if (isFresh && counted.replicas > 0) return counted.replicas;
    const [role, , list] = (await this.#primary.role()) as unknown[];
    if (role !== "master" || !Array.isArray(list)) throw unreplicated(`it is no primary but a ${role}`);
    this.#counted = { replicas: list.length, atMs: nowMs, stream };
    return list.length;
  }
}

function unreplicated(detail: string): Fault {
  return new Fault("redis-unreplicated", { detail });
}

function isElsewhere(error: unknown): boolean {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error && /^(MOVED|Connection is closed)/.test(cause.message);
}
