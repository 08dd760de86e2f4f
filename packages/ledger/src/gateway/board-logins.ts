import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Dashboard logins, by the hash of the session's secret. */
export class BoardLogins {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async begin(hash: string, who: string, keptSeconds: number): Promise<void> {
    await this.#redis.set(redisKeys.boardSession(hash), who, "EX", keptSeconds);
  }

  async who(hash: string): Promise<string | undefined> {
    return (await this.#redis.get(redisKeys.boardSession(hash))) ?? undefined;
  }

  async end(hash: string): Promise<void> {
    await this.#redis.del(redisKeys.boardSession(hash));
  }
}
