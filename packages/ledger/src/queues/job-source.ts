import { redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import type { Holding } from "../leases/leases.ts";
import { type BeginningAtOnce, Exchanges } from "./exchange.ts";
import {
  attemptOf,
  completedKey,
  entryKey,
  entryPrefix,
  failedKey,
  finishedKept,
  jobIdOf,
  prioritizedKey,
  takenKey,
  waitKey,
} from "./queue-layout.ts";
import { QueuePeek } from "./queue-peek.ts";
import type { Wakes } from "./wakes.ts";

/** Jobs taken in one call. Jobs taken ahead stay in order, and the next holder finds them. */
export const fetchedAtOnce = 16;

const fenced = z.tuple([z.literal("fenced"), z.number()]).transform(() => "fenced" as const);
const complete = new Script({
  name: "complete",
  file: new URL("../../lua/complete.lua", import.meta.url),
  parse: (reply) =>
    z.union([fenced, z.tuple([z.literal("completed")]).transform(([word]) => word)]).parse(reply),
});
const pick = new Script({
  name: "pick",
  file: new URL("../../lua/pick.lua", import.meta.url),
  parse: (reply) =>
    z
      .union([
        fenced,
        z.tuple([z.literal("gone")]).transform(() => undefined),
        z
          .tuple([z.literal("picked"), z.string(), z.string()])
          .transform(([, data, timestamp]) => ({ data, timestamp })),
      ])
      .parse(reply),
});

/** A job that this holder has taken from the sandbox's queue. */
export interface HeldJob {
  readonly id: string;
  /** Differs for each attempt. */
  readonly queuedId: string;
  readonly attempt: number;
  /** Epoch milliseconds, by the clock of its producer. */
  readonly queuedAtMs: number;
  /** It began in the step that took it. */
  readonly isBegun: boolean;
  /** The data of its queue entry: the whole job, unless its request is staged. */
  readonly bytes: number;
  /** As it was found, not validated yet. */
  load(): Promise<unknown>;
  complete(): Promise<void>;
}

/** For a holder that may be idle: its first job can begin in the step that takes it. */
export interface AtOnce {
  /** Called before jobs are taken. Undefined: none is to begin. */
  readonly beginning: () => BeginningAtOnce | undefined;
  /** Called if none began, because another job is taken that this holder has not begun. */
  readonly onBehind: () => void;
}

/**
 * Takes jobs from one sandbox's queue, for the holder of its lease. Every call is fenced. The tenancy decides the order within
 * sessions, and what happens to a dead holder's jobs.
 */
export class JobSource {
  readonly #redis: Redis;
  readonly #key: SandboxKey;
  readonly #holding: Holding;
  readonly #exchanges: Exchanges;
  readonly #peek: QueuePeek;
  readonly #stopListening: () => void;
  /** Taken, and not given to the tenancy yet. */
  #ahead: HeldJob[] = [];
  /** The queue may have jobs: it was not found empty since the last wake-up. */
  #mayHaveJobs = true;
  #onWake = () => {};
  #closed = false;

  constructor(
    redis: Redis,
    key: SandboxKey,
    holding: Holding,
    wakes: Wakes,
    exchanges: Exchanges = new Exchanges(redis),
  ) {
    this.#redis = redis;
    this.#exchanges = exchanges;
    this.#peek = new QueuePeek(redis, key);
    this.#key = key;
    this.#holding = holding;
    this.#stopListening = wakes.listen(key, () => this.#wake());
  }

  /**
   * The next job, or undefined if none came in about that time, or after `wake`. One call at a time. If it is closed meanwhile, it still
   * returns a job that has begun: the caller has to take that beginning back.
   */
  async next(waitMs: number, atOnce?: AtOnce): Promise<HeldJob | undefined> {
    if (this.#ahead.length === 0 && !this.#mayHaveJobs && !this.#closed) await this.#woken(waitMs);
    if (this.#ahead.length === 0 && !this.#closed && (await this.#hasJobs())) await this.#fetch(atOnce);
    return this.#closed && !this.#ahead[0]?.isBegun ? undefined : this.#ahead.shift();
  }

  /**
   * The first job of a session that is not among those, wherever in the queue it waits. Jobs that were taken ahead come first.
   * Does not wait, and does not read the queue on every call. One call at a time, and none of `next` meanwhile.
   */
  async nextBeside(sessions: ReadonlySet<string>): Promise<HeldJob | undefined> {
    if (this.#ahead.length > 0 || this.#closed) return this.#closed ? undefined : this.#ahead.shift();
    const queuedId = await this.#peek.first((session) => !sessions.has(session));
    return queuedId === undefined ? undefined : await this.#pick(queuedId);
  }

  /** The jobs that any holder took from the queue, in the order of taking. */
  async active(): Promise<HeldJob[]> {
    // Jobs that were taken ahead are among them.
    this.#ahead = [];
    const ids = await this.#redis.lrange(takenKey(this.#key), 0, -1);
    const entries = await Promise.all(
      ids.map(async (id) => {
        const [data, timestamp] = await this.#redis.hmget(entryKey(this.#key, id), "data", "timestamp");
        if (data != null) return this.#held(id, data, timestamp ?? "0");
        // Without its entry the job is unknown, and no job taken after it could begin.
        await this.#redis.lrem(takenKey(this.#key), 1, id);
        return undefined;
      }),
    );
    return entries.filter((held) => held !== undefined).reverse();
  }

  /** Makes a waiting `next` look at the queue again, and return. */
  async wake(): Promise<void> {
    this.#wake();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    this.#onWake();
  }

  #wake(): void {
    this.#mayHaveJobs = true;
    this.#onWake();
  }

  async #woken(waitMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#onWake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onWake = () => {};
  }

  /** A wake-up may be lost, so an idle holder also looks by itself, in one command instead of the fetch's five. */
  async #hasJobs(): Promise<boolean> {
    return this.#mayHaveJobs || (await this.#redis.exists(waitKey(this.#key), prioritizedKey(this.#key))) > 0;
  }

  async #fetch(atOnce: AtOnce | undefined): Promise<void> {
    this.#mayHaveJobs = false;
    const holder = { key: this.#key, ...this.#holding };
    const taking = { most: fetchedAtOnce, begin: atOnce?.beginning() };
    const taken = await this.#exchanges.take(holder, taking).catch((error: unknown) => {
      this.#mayHaveJobs = true;
      throw error;
    });
    if (taken === "fenced") throw this.#fencedError();
    const { entries, fate } = taken;
    for (const [index, { queuedId, data, timestamp }] of entries.entries())
      this.#ahead.push(this.#held(queuedId, data, timestamp, index === 0 && fate === "begun"));
    if (fate === "behind") atOnce?.onBehind();
    if (entries.length === fetchedAtOnce) this.#mayHaveJobs = true;
    else this.#peek.forget();
  }

  async #pick(queuedId: string): Promise<HeldJob | undefined> {
    const key = this.#key;
    const keys = [
      redisKeys.lease(key),
      waitKey(key),
      prioritizedKey(key),
      takenKey(key),
      entryKey(key, queuedId),
    ];
    const { epoch, instance } = this.#holding;
    const picked = await pick.run(this.#redis, keys, [epoch, instance, queuedId]);
    if (picked === "fenced") throw this.#fencedError();
    return picked && this.#held(queuedId, picked.data, picked.timestamp);
  }

  #held(queuedId: string, data: string, timestamp: string, isBegun = false): HeldJob {
    return {
      id: jobIdOf(queuedId),
      queuedId,
      attempt: attemptOf(queuedId),
      queuedAtMs: Number(timestamp),
      isBegun,
      bytes: Buffer.byteLength(data),
      load: async () => JSON.parse(data),
      complete: () => this.#complete(queuedId),
    };
  }

  async #complete(queuedId: string): Promise<void> {
    const key = this.#key;
    const keys = [redisKeys.lease(key), takenKey(key), completedKey(key), failedKey(key)];
    const { epoch, instance } = this.#holding;
    const done = await complete.run(this.#redis, keys, [
      ...[epoch, instance, queuedId, entryPrefix(key), finishedKept, key],
    ]);
    if (done === "fenced") throw this.#fencedError();
  }

  #fencedError(): Error {
    return new Error(`epoch ${this.#holding.epoch} no longer holds ${this.#key}`);
  }
}
