import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** The secret from which all webhook signing secrets are derived. Stores `made` if there is none yet. */
export async function webhookSecret(redis: Redis, made: string): Promise<string> {
  return (await redis.set(redisKeys.webhookSecret, made, "NX", "GET")) ?? made;
}
