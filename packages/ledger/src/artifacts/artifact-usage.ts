import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";

export interface ArtifactUsage {
  readonly bytes: number;
  readonly artifacts: number;
}

/** The totals of a tenant's artifacts. `artifact-add.lua` and `artifact-drop.lua` keep the two counters. */
export async function readArtifactUsage(redis: Redis, tenant: string): Promise<ArtifactUsage> {
  const [bytes, count] = await redis.hmget(redisKeys.artifactUsage, tenant, `${tenant}/count`);
  return { bytes: Number(bytes ?? 0), artifacts: Number(count ?? 0) };
}
