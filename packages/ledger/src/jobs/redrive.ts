import {
  Fault,
  type Job,
  jobId as jobIdSchema,
  job as jobSchema,
  problemsOf,
  redisKeys,
  type SandboxKey,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { readReturned } from "../queues/board-entry.ts";
import { entryKey, failedKey, jobIdOf, queuedId } from "../queues/queue-layout.ts";
import { readJobRecord } from "./job-record.ts";

type Enqueue = (job: Job) => Promise<unknown>;

const redriveLabel = "berth.redrive-of";

/** The same job under a new id, `<first id>-redrive-<n>`. The caller enqueues it. `data`: the job as found, not validated. */
export async function redrivenJob(
  redis: Redis,
  jobId: string,
  data: unknown,
  chosenId?: string,
): Promise<Job> {
  const parsed = jobSchema.safeParse(data);
  if (!parsed.success)
    throw notRedrivable(
      "unreadable",
      jobId,
      `the job ${jobId} cannot be read: ${problemsOf(parsed.error).join("; ")}`,
    );
  const { deadlineAtMs: _, inbox: __, ...job } = parsed.data;
  const first = job.labels[redriveLabel] ?? job.id;
  const id = jobIdSchema.parse(chosenId ?? (await freeId(redis, first)));
  return { ...job, id, attempt: 1, labels: { ...job.labels, [redriveLabel]: first } };
}

/**
 * Enqueues an ended job again under a new id, and returns that id. The first job's records stay. Its queue entry names the new id
 * before the new job is enqueued.
 */
export async function redriveJob(redis: Redis, jobId: string, enqueue: Enqueue): Promise<string> {
  const record = await readJobRecord(redis, jobId);
  if (!record) throw notRedrivable("not-found", jobId, `no job ${jobId} is known`);
  if (record.outcome === undefined)
    throw notRedrivable("unfinished", jobId, `the job ${jobId} has not ended; it can be run again then`);
  const entry = entryKey(record.key, queuedId(jobId, Math.max(record.added, 1)));
  const [data, returned] = await redis.hmget(entry, "data", "returnvalue");
  if (data == null)
    throw notRedrivable("not-found", jobId, `the request of the job ${jobId} is no longer kept`);
  const found = JSON.parse(data);
  if (found.staged !== undefined)
    throw notRedrivable("not-found", jobId, `the request of the job ${jobId} was too large to be kept`);
  const job = await redrivenJob(redis, jobId, found);
  const noted = { ...readReturned(returned), redrivenAs: job.id };
  await redis.hset(entry, "returnvalue", JSON.stringify(noted));
  await enqueue(job);
  return job.id;
}

export interface FailedJobs {
  /** In the order in which they ended. */
  readonly ids: readonly string[];
  /** Entries of jobs that were cancelled or run again before, and of attempts that another one followed. */
  readonly others: number;
}

/** Among a sandbox's entries that a dashboard lists as failed: the jobs that can be run again. */
export async function failedJobs(redis: Redis, key: SandboxKey): Promise<FailedJobs> {
  const listed = await redis.zrange(failedKey(key), "0", "-1");
  const ids: string[] = [];
  for (const queued of listed) {
    const { outcome, redrivenAs, nextAttempt } = readReturned(
      await redis.hget(entryKey(key, queued), "returnvalue"),
    );
    if (nextAttempt !== undefined || outcome?.kind === "cancelled") continue;
    const isKnown = redrivenAs !== undefined && (await redis.exists(redisKeys.sandboxOf(redrivenAs))) === 1;
    if (!isKnown) ids.push(jobIdOf(queued));
  }
  return { ids, others: listed.length - ids.length };
}

export function notRedrivable(
  reason: "not-found" | "unreadable" | "unfinished",
  jobId: string,
  detail: string,
): Fault {
  return new Fault("not-redrivable", { jobId, reason, detail });
}

async function freeId(redis: Redis, first: string): Promise<string> {
  for (let n = 1; ; n++) {
    const id = `${first}-redrive-${n}`;
    if ((await redis.exists(redisKeys.sandboxOf(id))) === 0) return id;
  }
}
