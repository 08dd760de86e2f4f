import { hash } from "node:crypto";
import { type Job, job, placeIn, redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readLease } from "../leases/lease-record.ts";
import { unfinishedKeys } from "./queue-layout.ts";

/**
 * Jobs that destroy the sandboxes that were not used for so long, the longest unused first. Every worker finds the same ones, under the
 * same ids: each is run once. One that has jobs, which may wait for a host that is away, is left alone.
 */
export async function pruningJobs(
  redis: Redis,
  { unusedMs, limit }: { readonly unusedMs: number; readonly limit: number },
): Promise<Job[]> {
  const [seconds] = await redis.time();
  const before = Number(seconds) * 1_000 - unusedMs;
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
    const place = placeIn(key);
    if (!place || (await redis.exists(...unfinishedKeys(key))) > 0) continue;
    if ((await readLease(redis, key)).isDestroyed) {
      // Its holder went before it could take it off the list.
      await redis.zrem(redisKeys.sandboxes, key);
      await redis.zrem(redisKeys.sandboxesOf(place.tenant), key);
      continue;
    }
    const id = `prune-${hash("sha256", `${key} ${found[index + 1]}`, "base64url").slice(0, 22)}`;
    jobs.push(job.parse({ version: 1, id, ...place, request: { kind: "destroy" } }));
  }
  return jobs;
}
