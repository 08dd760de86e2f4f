import type { SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readSessions } from "../jobs/job-record.ts";
import { jobIdOf, prioritizedKey, waitKey } from "./queue-layout.ts";

/** How many jobs are read, and remembered with their sessions. Jobs behind them are read when some of them have left. */
const lookedAtMost = 100_000;
/** Sessions asked for in one round trip. */
const askedAtOnce = 1_000;
/** Reading takes at most this share of the time. */
const lookingShare = 0.05;

/** Which sessions the jobs of one sandbox's queue belong to. Takes nothing. */
export class QueuePeek {
  readonly #redis: Redis;
  readonly #key: SandboxKey;
  readonly #sessionOf = new Map<string, string>();
  #restUntilMs = 0;

  constructor(redis: Redis, key: SandboxKey) {
    this.#redis = redis;
    this.#key = key;
  }

  /** The id in the queue of the first waiting job of such a session. Also undefined if the last look was just before. */
  async first(isWanted: (session: string) => boolean): Promise<string | undefined> {
    const beganMs = performance.now();
    if (beganMs < this.#restUntilMs) return undefined;
    try {
      return await this.#look(isWanted);
    } finally {
      const nowMs = performance.now();
      this.#restUntilMs = nowMs + (nowMs - beganMs) / lookingShare;
    }
  }

  /** Call it when the queue is empty. */
  forget(): void {
    this.#sessionOf.clear();
  }

  async #look(isWanted: (session: string) => boolean): Promise<string | undefined> {
    const ids = await this.#waiting();
    this.#forgetAllBut(ids);
    for (let from = 0; from < ids.length; from += askedAtOnce) {
      const some = ids.slice(from, from + askedAtOnce);
      await this.#learn(some);
      const found = some.find((id) => {
        const session = this.#sessionOf.get(id);
        return session !== undefined && isWanted(session);
      });
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Forgets the jobs that have left, once they are many. */
  #forgetAllBut(waiting: readonly string[]): void {
    if (this.#sessionOf.size < waiting.length + askedAtOnce) return;
    const still = new Set(waiting);
    for (const id of this.#sessionOf.keys()) if (!still.has(id)) this.#sessionOf.delete(id);
  }

  async #learn(ids: readonly string[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#sessionOf.has(id));
    const sessions = await readSessions(this.#redis, this.#key, unknown.map(jobIdOf));
    unknown.forEach((id, index) => {
      const session = sessions[index];
      if (session !== undefined) this.#sessionOf.set(id, session);
    });
  }

  /** In the order in which a worker would take them. */
  async #waiting(): Promise<string[]> {
    const [plain, prioritized] = await Promise.all([
      this.#redis.lrange(waitKey(this.#key), -lookedAtMost, -1),
      this.#redis.zrange(prioritizedKey(this.#key), "0", String(lookedAtMost - 1)),
    ]);
    return [...plain.reverse(), ...prioritized].slice(0, lookedAtMost);
  }
}
