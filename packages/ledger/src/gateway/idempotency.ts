import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Notes the fingerprint of the request that an Idempotency-Key came with. Gives that of the request it came with before. */
export async function firstFingerprint(
  redis: Redis,
  id: string,
  fingerprint: string,
  keptSeconds: number,
): Promise<string> {
  const before = await redis.set(redisKeys.idempotency(id), fingerprint, "EX", keptSeconds, "NX", "GET");
  return before ?? fingerprint;
}
