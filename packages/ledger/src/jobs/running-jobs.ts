import type { SandboxKey } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { attemptOf, jobIdOf, takenKey } from "../queues/queue-layout.ts";
import { readBegun } from "./job-record.ts";

/** A holder takes only a few jobs more than it may park, so this covers all of them. */
const mostTaken = 256;

/** A job that a worker has begun. */
export interface RunningJob {
  readonly jobId: string;
  readonly tenant: string;
  readonly session: string;
  /** By Redis' clock; 0 if an older version of Berth began it. */
  readonly begunAtMs: number;
}

/** The jobs of a sandbox that have begun and not ended, in the order of taking. */
export async function runningJobs(redis: Redis, key: SandboxKey): Promise<RunningJob[]> {
  const taken = (await redis.lrange(takenKey(key), -mostTaken, -1)).reverse();
  const found = await Promise.all(
    taken.map(async (queued): Promise<RunningJob | undefined> => {
      const jobId = jobIdOf(queued);
      const begun = await readBegun(redis, key, jobId, attemptOf(queued));
      return begun && { jobId, ...begun };
    }),
  );
  return found.filter((job) => job !== undefined);
}
