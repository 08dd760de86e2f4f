import { type Acceptance, Fault } from "@berth/protocol";
import type { Redis } from "ioredis";
import { OneAfterAnother } from "./one-after-another.ts";
import { nodeOf } from "./topology.ts";

/** Replicas answer within milliseconds. One that is away counts as connected until its primary's `repl-timeout`. */
const waitMs = 1_000;
/** How long a count of replicas is used. */
const countedForMs = 1_000;
/** A slot that moves or fails over has another primary soon. */
const triesMost = 5;

const attached = new WeakMap<Redis, Replicated>();

/**
 * Makes steps that count only once replicas have them: a primary that dies takes none of them along.
 *
 * It has a connection of its own, on which each step is followed by WAIT. Replicas acknowledge for the whole connection, so steps
 * that were sent together wait once. The step and its WAIT go through the same socket: after a reconnection another primary might
 * acknowledge what it never got. A step that was not acknowledged may have been made all the same, so each has to be
 * idempotent.
 */
export class Replicated {
  readonly #redis: Redis;
  readonly #least: number;
  readonly #waits = new WeakMap<Redis, Waits>();

  private constructor(redis: Redis, { replicas }: Acceptance) {
    this.#redis = redis;
    this.#least = replicas;
  }

  /** Steps of `redis` go through `own` from now on, which ends with it. */
  static attach(redis: Redis & { companion?: Redis }, own: Redis, acceptance: Acceptance): void {
    redis.companion = own;
    attached.set(redis, new Replicated(own, acceptance));
  }

  /** Undefined where a step counts when the primary has made it. */
  static of(redis: Redis): Replicated | undefined {
    return attached.get(redis);
  }

  /** Makes a step on the primary that has `key`. */
  async make<R>(key: string, step: (primary: Redis) => Promise<R>): Promise<R> {
    for (let tries = 1; ; tries++) {
      const primary = nodeOf(this.#redis, key);
      try {
        if (primary) return await this.#makeOn(primary, step);
      } catch (error) {
        if (tries >= triesMost || !isElsewhere(error)) throw error;
      }
      // On a cluster this follows redirections, and so finds the primary. Waits for it as any call would.
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

  /** Covers all that was answered on the connection before this call. */
  next(): Promise<Waited> {
    return this.#waits.next();
  }

  async #wait(): Promise<Waited> {
    let wanted = Math.max(this.#least, await this.#connected());
    const acknowledged = await this.#primary.wait(wanted, waitMs);
    if (acknowledged < wanted) {
      // One may have left since it was counted.
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
    // The first replica has to acknowledge from the moment it is there: it may be promoted.
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
