import { hash } from "node:crypto";
import { type Job, job, partsOfKey, redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readLease } from "../leases/lease-record.ts";
import { redisNow } from "../redis-now.ts";
import { unfinishedKeys } from "./queue-layout.ts";

/**
 * Jobs that destroy sandboxes unused for `unusedMs`, the longest unused first. Every worker finds the same sandboxes and gives their jobs
 * the same ids, so each runs once. Skips sandboxes with jobs, which may wait for a host that is away.
 */
export async function pruningJobs(
  redis: Redis,
  { unusedMs, limit }: { readonly unusedMs: number; readonly limit: number },
): Promise<Job[]> {
  const before = (await redisNow(redis)) - unusedMs;
  const found = await redis.zrangebyscore(
    redisKeys.sandboxes,
    "-inf",
    before,
    "WITHSCORES",
    "LIMIT",
    0,
    limit,
  );
  const jobs: Job[] = [];
  for (let index = 0; index < found.length; index += 2) {
    const key = sandboxKey.parse(found[index]);
    const parts = partsOfKey(key);
    if (!parts || (await redis.exists(...unfinishedKeys(key))) > 0) continue;
    if ((await readLease(redis, key)).isDestroyed) {
      // Its holder died before it could remove it from the list.
      await redis.zrem(redisKeys.sandboxes, key);
      await redis.zrem(redisKeys.sandboxesOf(parts.tenant), key);
      continue;
    }
    const id = `prune-${hash("sha256", `${key} ${found[index + 1]}`, "base64url").slice(0, 22)}`;
    jobs.push(job.parse({ version: 1, id, ...parts, request: { kind: "destroy" } }));
  }
  return jobs;
}
