import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** What all webhooks' signing secrets are derived from. `made` becomes it if there is none yet. */
export async function webhookSecret(redis: Redis, made: string): Promise<string> {
  return (await redis.set(redisKeys.webhookSecret, made, "NX", "GET")) ?? made;
}
