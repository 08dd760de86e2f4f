import { redisKeys, type SandboxKey, sandboxKey, tenantOf } from "@berth/protocol";
import { type Offers, queuedId, unfinishedKeys } from "@berth/queue";
import type { Redis } from "@berth/redis";
import type { JobEvents, JobProgress } from "@berth/streams";
import { type FleetView, redisNow } from "./fleet-view.ts";

/** Why a job is where it is. */
export interface Why {
  readonly jobId: string;
  readonly state: "unknown" | "scheduled" | "waiting" | "running" | "finished";
  /** For people, the most telling first. */
  readonly reasons: readonly string[];
  readonly sandbox?: SandboxKey;
  /** Jobs of the sandbox that are before it. */
  readonly position?: number;
  readonly heldBy?: string;
  readonly dueAtMs?: number;
}

export interface WhyParts {
  readonly redis: Redis;
  readonly offers: Offers;
  readonly events: JobEvents;
  readonly fleet: FleetView;
  /** When a delayed job, or one that is to run again, is due. */
  readonly dueAtMs: (jobId: string) => Promise<number | undefined>;
}

export async function why(parts: WhyParts, jobId: string): Promise<Why> {
  const { redis, events, dueAtMs } = parts;
  const known = await redis.hgetall(redisKeys.job(jobId));
  if (known.key === undefined) {
    const reason = "no job of that id was accepted, or it ended more than a day ago";
    return { jobId, state: "unknown", reasons: [reason] };
  }
  const key = sandboxKey.parse(known.key);
  const progress = await events.progress(key, jobId);
  if (progress.state === "finished") {
    const ended = `it ended: ${progress.result.outcome.kind}`;
    return { jobId, state: "finished", sandbox: key, reasons: [ended] };
  }
  const due = await dueAtMs(jobId);
  if (due !== undefined) {
    const reasons = [`it is due at ${new Date(due).toISOString()}`];
    return { jobId, state: "scheduled", sandbox: key, reasons, dueAtMs: due };
  }
  return await unfinished(
    parts,
    { jobId, key, queuedId: queuedId(jobId, Number(known.added ?? 1)) },
    progress,
  );
}

async function unfinished(
  parts: WhyParts,
  { jobId, key, queuedId }: { jobId: string; key: SandboxKey; queuedId: string },
  progress: JobProgress,
): Promise<Why> {
  const { redis } = parts;
  const now = await redisNow(redis);
  const [worker, deadline, home, pool, trouble] = await redis.hmget(
    redisKeys.lease(key),
    "worker",
    "deadline",
    "home",
    "pool",
    "trouble",
  );
  const heldBy = worker && Number(deadline) > now ? worker : undefined;
  const about = { jobId, sandbox: key, ...(heldBy === undefined ? {} : { heldBy }) };
  if (progress.state === "started" && heldBy !== undefined) {
    return { ...about, state: "running", reasons: [`it runs on ${heldBy}`] };
  }
  const position = await positionOf(redis, key, queuedId);
  const reasons: string[] = [];
  const paused = (await redis.sismember(redisKeys.paused, tenantOf(key))) === 1;
  if (paused) reasons.push(`the tenant ${tenantOf(key)} is paused`);
  if (progress.state === "started") reasons.push("its worker is gone; another is to settle it");
  if (trouble) reasons.push(`no sandbox could be had for it: ${trouble}`);
  if (heldBy !== undefined) reasons.push(`its sandbox is held by ${heldBy}`);
  else if (!paused)
    reasons.push(...(await unheldReasons(parts, key, { pool: pool ?? "default", home: home ?? undefined })));
  if (position !== undefined && position > 0) reasons.push(`${position} jobs of its sandbox are before it`);
  return { ...about, state: "waiting", reasons, ...(position === undefined ? {} : { position }) };
}

async function unheldReasons(
  { offers, fleet }: WhyParts,
  key: SandboxKey,
  place: { pool: string; home: string | undefined },
): Promise<string[]> {
  const workers = (await fleet.workers()).filter(({ pools }) => pools.includes(place.pool));
  if (workers.length === 0) return [`no worker of the pool ${place.pool} is there`];
  const able = workers.filter(({ host }) => place.home === undefined || host === place.home);
  if (able.length === 0) return [`its workspace is on the host ${place.home}, which is offline`];
  const well = able.filter(({ health }) => health === "ok");
  if (well.length === 0) return [`no worker that could take it has an engine: ${able[0]?.health}`];
  const before = await offers.before(key, place);
  const line = before === undefined ? "it is about to be offered" : `${before} sandboxes are before its own`;
  const free = well.some(({ slots, held }) => held < slots);
  return [free ? `a worker is about to take its sandbox; ${line}` : `no slot is free; ${line}`];
}

/** How many are before it in the sandbox's queue; 0 when it has been taken from there. */
async function positionOf(redis: Redis, key: SandboxKey, queued: string): Promise<number | undefined> {
  const [wait = "", active = "", prioritized = ""] = unfinishedKeys(key);
  const waiting = await redis.lpos(wait, queued);
  if (waiting !== null) return (await redis.llen(wait)) - 1 - waiting;
  const rank = await redis.zrank(prioritized, queued);
  if (rank !== null) return (await redis.llen(wait)) + rank;
  return (await redis.lpos(active, queued)) === null ? undefined : 0;
}
