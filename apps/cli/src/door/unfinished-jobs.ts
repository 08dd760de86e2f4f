import { redisKeys } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { JobState, Query, UnfinishedJob } from "../door.ts";

const pageSize = 500;
/** As in the gateway: a tenant with few jobs must not make us read an index of a million. */
const lookedAtMost = 10_000;

type StateOf = (id: string) => Promise<JobState | undefined>;

/** Unfinished jobs, the oldest first. Looks at the oldest ten thousand of the fleet. */
export async function unfinishedJobs(
  redis: Redis,
  stateOf: StateOf,
  { tenant, limit }: Query,
): Promise<UnfinishedJob[]> {
  const found: UnfinishedJob[] = [];
  for (let from = 0; from < lookedAtMost && found.length < limit; from += pageSize) {
    const ids = await redis.zrange(redisKeys.unfinished, String(from), String(from + pageSize - 1));
    if (ids.length === 0) break;
    const jobs = await Promise.all(ids.map((id) => unfinished(redis, stateOf, id, tenant)));
    found.push(...jobs.filter((job) => job !== undefined));
  }
  return found.slice(0, limit);
}

async function unfinished(
  redis: Redis,
  stateOf: StateOf,
  id: string,
  wanted: string | undefined,
): Promise<UnfinishedJob | undefined> {
  const known = await redis.hgetall(redisKeys.job(id));
  const { key, tenant = "", session = "", kind = "", at = "0", added = "0", begun = "0" } = known;
  if (key === undefined || (wanted !== undefined && tenant !== wanted)) return undefined;
  const reached = await stateOf(id);
  // It ended while we looked.
  if (reached === undefined || reached === "finished") return undefined;
  const isQueued = Number(added) > Number(begun);
  const state = reached === "started" ? "running" : isQueued ? "waiting" : "scheduled";
  return { id, tenant, session, kind, sandbox: key, state, acceptedAtMs: Number(at) };
}
