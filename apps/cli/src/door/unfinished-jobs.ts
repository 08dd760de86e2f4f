import { redisKeys, sandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { UnfinishedJob } from "../door.ts";

const pageSize = 500;

/** Jobs that are in a queue or run, the oldest first. Reads the index, and of each what it says of itself. */
export async function unfinishedJobs(
  redis: Redis,
  { tenant, limit }: { readonly tenant?: string | undefined; readonly limit: number },
): Promise<UnfinishedJob[]> {
  const found: UnfinishedJob[] = [];
  for (let from = 0; found.length < limit; from += pageSize) {
    const ids = await redis.zrange(redisKeys.unfinished, String(from), String(from + pageSize - 1));
    if (ids.length === 0) break;
    const jobs = await Promise.all(ids.map((id) => known(redis, id, tenant)));
    found.push(...jobs.filter((job) => job !== undefined));
  }
  return found.slice(0, limit);
}

async function known(
  redis: Redis,
  id: string,
  wanted: string | undefined,
): Promise<UnfinishedJob | undefined> {
  const { key, tenant = "", session = "", kind = "", at } = await redis.hgetall(redisKeys.job(id));
  if (key === undefined || (wanted !== undefined && tenant !== wanted)) return undefined;
  const begun = await redis.exists(redisKeys.events(sandboxKey.parse(key), id));
  const state = begun === 1 ? "started" : "not-started";
  return { id, tenant, session, kind, sandbox: key, state, acceptedAtMs: Number(at ?? 0) };
}
