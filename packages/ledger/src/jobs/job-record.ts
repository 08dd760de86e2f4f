import {
  type GivenNames,
  type JobResult,
  redisKeys,
  type SandboxKey,
  sandboxKey,
  sharedOwner,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { z } from "zod";
import type { JobProgress } from "../events/job-events.ts";
import type { FieldOf } from "../key-record.ts";
import { readNames } from "../names.ts";
import type { jobRecords } from "./records.ts";

/** A job whose producer died before marking it has only `key` and `outcome`. */
const stored = z.object({
  key: z.string().pipe(sandboxKey),
  tenant: z.string().default(""),
  session: z.string().default(""),
  kind: z.string().default(""),
  at: z.coerce.number().default(0),
  added: z.coerce.number().default(0),
  begun: z.coerce.number().default(0),
  begunAt: z.coerce.number().default(0),
  outcome: z.string().optional(),
  names: z.string().optional().transform(readNames),
} satisfies { readonly [name in FieldOf<typeof jobRecords.job>]?: z.ZodType });

/** A job's record in Redis beside its events, from its acceptance to a day after its end. */
export interface JobRecord {
  readonly id: string;
  readonly key: SandboxKey;
  readonly tenant: string;
  readonly session: string;
  readonly kind: string;
  readonly acceptedAtMs: number;
  /** The last attempt that was added to the sandbox's queue; 0 while the first waits for its time. */
  readonly added: number;
  /** The last attempt that a worker began; 0 for none. */
  readonly begun: number;
  /** When, by Redis' clock; 0 if an older version of Berth began it. */
  readonly begunAtMs: number;
  /** Tenant, session and agent as the producer gave them, where the ids differ. */
  readonly names: GivenNames | undefined;
  /** How the job ended. */
  readonly outcome: string | undefined;
}

export const jobStates = ["scheduled", "waiting", "running", "retrying", "finished"] as const;
/**
 * `scheduled`: the first attempt waits for its time. `retrying`: an attempt ended, and the next waits for its time.
 * `waiting`: in the sandbox's queue.
 */
export type JobState = (typeof jobStates)[number];

/**
 * The state of a job. The record must be read before the progress: then a record that lags behind is corrected by the
 * events. Where events were lost, the record decides.
 */
export function stateOf(
  { added, begun, outcome }: Pick<JobRecord, "added" | "begun" | "outcome">,
  progress: JobProgress,
): JobState {
  if (progress.state === "finished" || outcome !== undefined) return "finished";
  if (progress.state === "started") return "running";
  if (progress.retried !== undefined) return added > progress.retried ? "waiting" : "retrying";
  if (added === 0) return "scheduled";
  return begun >= added ? "running" : "waiting";
}

export type ShownState = Exclude<JobState, "retrying">;

/** The HTTP API and the CLI show a job between two attempts as scheduled. */
export function shownState(state: JobState): ShownState {
  return state === "retrying" ? "scheduled" : state;
}

/** Undefined: no job of that id was accepted, or it ended more than a day ago. */
export async function readJobRecord(
  redis: Redis,
  id: string,
  sandbox?: SandboxKey,
): Promise<JobRecord | undefined> {
  const key = sandbox ?? (await readSandboxKey(redis, id));
  const parsed = stored.safeParse(key && (await redis.hgetall(redisKeys.job(key, id))));
  if (!parsed.success) return undefined;
  const { at, begunAt, outcome, ...record } = parsed.data;
  return { id, ...record, acceptedAtMs: at, begunAtMs: begunAt, outcome };
}

/** The sandbox of a job. */
export async function readSandboxKey(redis: Redis, id: string): Promise<SandboxKey | undefined> {
  const key = await redis.get(redisKeys.sandboxOf(id));
  return key === null ? undefined : sandboxKey.parse(key);
}

/** The last attempts that were added and begun; 0 for none, also for an unknown job. */
export async function readAttempts(
  redis: Redis,
  key: SandboxKey,
  id: string,
): Promise<Pick<JobRecord, "added" | "begun">> {
  const [added, begun] = await redis.hmget(redisKeys.job(key, id), "added", "begun");
  return { added: Number(added ?? 0), begun: Number(begun ?? 0) };
}

/** For each of many jobs, in one round trip: whether it has ended. Undefined for one that is not known. */
export async function readEnds(
  redis: Redis,
  jobs: readonly { readonly key: SandboxKey; readonly jobId: string }[],
): Promise<(boolean | undefined)[]> {
  const fields = await Promise.all(
    jobs.map(({ key, jobId }) => redis.hmget(redisKeys.job(key, jobId), "key", "outcome")),
  );
  return fields.map(([key, outcome]) => (key === null ? undefined : outcome !== null));
}

/** For each id, the job's session; undefined for one that is not known. */
export async function readSessions(
  redis: Redis,
  key: SandboxKey,
  ids: readonly string[],
): Promise<(string | undefined)[]> {
  return Promise.all(
    ids.map(async (id) => (await redis.hget(redisKeys.job(key, id), "session")) ?? undefined),
  );
}

/** For each id, whether a cancellation was requested. */
export async function areCancelled(
  redis: Redis,
  key: SandboxKey,
  ids: readonly string[],
): Promise<boolean[]> {
  return Promise.all(ids.map(async (id) => (await redis.hexists(redisKeys.job(key, id), "cancel")) === 1));
}

/** Ids of jobs that have not ended, of one tenant or of all, the oldest first. */
export async function unfinishedJobIds(
  redis: Redis,
  {
    tenant,
    from,
    count,
  }: { readonly tenant?: string | undefined; readonly from: number; readonly count: number },
): Promise<string[]> {
  if (tenant === undefined) return redis.zrange(redisKeys.unfinished, String(from), String(from + count - 1));
  // The merged page cannot reach beyond `from + count` entries of either index.
  const first = (owner: string) =>
    redis.zrange(redisKeys.unfinishedOf(owner, tenant), "0", String(from + count - 1), "WITHSCORES");
  const both = await Promise.all([first(tenant), first(sharedOwner)]);
  return both
    .flatMap((flat) =>
      flat.flatMap((id, index) => (index % 2 === 0 ? [{ id, atMs: Number(flat[index + 1]) }] : [])),
    )
    .sort((a, b) => a.atMs - b.atMs)
    .slice(from, from + count)
    .map(({ id }) => id);
}

/** As `unfinishedJobIds`, for jobs that were added before `beforeMs`. */
export function unfinishedBefore(
  redis: Redis,
  beforeMs: number,
  from: number,
  count: number,
): Promise<string[]> {
  return redis.zrangebyscore(redisKeys.unfinished, "-inf", beforeMs, "LIMIT", from, count);
}

/** For each id, whether the job is known not to have ended. */
export async function areUnfinished(redis: Redis, ids: readonly string[]): Promise<boolean[]> {
  if (ids.length === 0) return [];
  return (await redis.zmscore(redisKeys.unfinished, ...ids)).map((score) => score !== null);
}

/** The end of a job that has one. */
export function resultIn(progress: JobProgress): JobResult | undefined {
  return progress.state === "finished" ? progress.result : undefined;
}

/** How far one attempt of a job got, for lists of what runs. Undefined: it has not begun, or the job has ended. */
export async function readBegun(
  redis: Redis,
  key: SandboxKey,
  jobId: string,
  attempt: number,
): Promise<{ readonly tenant: string; readonly session: string; readonly begunAtMs: number } | undefined> {
  const [tenant, session, begun, begunAt, outcome] = await redis.hmget(
    redisKeys.job(key, jobId),
    ...["tenant", "session", "begun", "begunAt", "outcome"],
  );
  if (Number(begun ?? 0) < attempt || outcome != null) return undefined;
  return { tenant: tenant ?? "", session: session ?? "", begunAtMs: Number(begunAt ?? 0) };
}
