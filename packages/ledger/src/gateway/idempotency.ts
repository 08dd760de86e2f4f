import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** Stores the fingerprint of the first request with an Idempotency-Key, and returns that fingerprint. */
export async function firstFingerprint(
  redis: Redis,
  id: string,
  fingerprint: string,
  keptSeconds: number,
): Promise<string> {
  const before = await redis.set(redisKeys.idempotency(id), fingerprint, "EX", keptSeconds, "NX", "GET");
  return before ?? fingerprint;
}
