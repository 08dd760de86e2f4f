import type { Redis } from "@berth/redis";

/** Milliseconds by the clock that all processes agree on. */
export async function redisNow(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
