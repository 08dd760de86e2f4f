import { redisKeys, type SandboxKey, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { redisNow } from "../redis-now.ts";

/** Counts workers with a heartbeat in the last `goneMs`. By Redis' clock, which stamps heartbeats: this machine's may be ahead. */
export async function countLiveWorkers(redis: Redis, goneMs: number): Promise<number> {
  return await redis.zcount(redisKeys.workers, (await redisNow(redis)) - goneMs, "+inf");
}

/** The sandboxes that were used last, and how many there are in all. */
export async function recentSandboxes(
  redis: Redis,
  most: number,
): Promise<{ readonly keys: readonly SandboxKey[]; readonly known: number }> {
  const [recent, known] = await Promise.all([
    redis.zrevrange(redisKeys.sandboxes, 0, most - 1),
    redis.zcard(redisKeys.sandboxes),
  ]);
  return { keys: recent.map((key) => sandboxKey.parse(key)), known };
}
