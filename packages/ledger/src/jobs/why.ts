import { exitCodeOf, type JobResult, redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { Approvals } from "../approvals/approvals.ts";
import type { JobEvents } from "../events/job-events.ts";
import type { FleetView } from "../fleet/fleet-view.ts";
import { readCeilings } from "../fleet/tenant-ceilings.ts";
import { holderIn, readLease } from "../leases/lease-record.ts";
import type { Offers, OfferTarget } from "../queues/offers.ts";
import { queuedId, unfinishedKeys } from "../queues/queue-layout.ts";
import { redisNow } from "../redis-now.ts";
import { type JobRecord, type JobState, readJobRecord, resultIn, stateOf } from "./job-record.ts";
import { type RunningJob, runningJobs } from "./running-jobs.ts";
import {
  type Behind,
  busyText,
  endedText,
  forHowLong,
  type Reason,
  type Why,
  type WhyCode,
} from "./why-texts.ts";

export interface WhyParts {
  readonly redis: Redis;
  readonly offers: Offers;
  readonly events: JobEvents;
  readonly fleet: FleetView;
  /** When a delayed job, or one that is to run again, is due. */
  readonly dueAtMs: (key: SandboxKey, jobId: string) => Promise<number | undefined>;
}

export async function why(parts: WhyParts, jobId: string): Promise<Why> {
  const { redis, events, dueAtMs } = parts;
  const record = await readJobRecord(redis, jobId);
  if (!record) {
    const text = "no job of that id was accepted, or it ended more than a day ago";
    return { jobId, state: "unknown", ...splitReasons([{ code: "unknown", text }]) };
  }
  const { key, tenant } = record;
  const progress = await events.progress(key, jobId);
  const state = stateOf(record, progress);
  const about = { jobId, tenant, sandbox: key, ...defined({ names: record.names }) };
  if (state === "finished") return { ...about, state: "finished", ...ended(record, resultIn(progress)) };
  const due = await dueAtMs(key, jobId);
  if (due !== undefined && (await new Approvals(redis).isWaiting(key, jobId))) {
    const text = `it waits for an administrator's approval, until ${new Date(due).toISOString()}`;
    return {
      ...about,
      state: "scheduled",
      ...splitReasons([{ code: "needs-approval", text }]),
      dueAtMs: due,
    };
  }
  if (due !== undefined) {
    const what =
      progress.state === "not-started" && progress.retried ? `attempt ${progress.retried + 1}` : "it";
    const text = `${what} is due at ${new Date(due).toISOString()}`;
    return { ...about, state: "scheduled", ...splitReasons([{ code: "due-later", text }]), dueAtMs: due };
  }
  return { ...about, ...(await unfinished(parts, record, state)) };
}

function ended({ outcome: kind }: JobRecord, result: JobResult | undefined): Pick<Why, "reasons" | "codes"> {
  if (result === undefined) return splitReasons([{ code: "ended", text: `it ended: ${kind}` }]);
  const { outcome } = result;
  const exitCode = exitCodeOf(outcome);
  const more = { outcome, ...(exitCode === undefined ? {} : { exitCode }) };
  return { ...splitReasons([{ code: "ended", text: endedText(outcome) }]), ...more };
}

async function unfinished(
  parts: WhyParts,
  record: JobRecord,
  state: JobState,
): Promise<Omit<Why, "jobId" | "tenant" | "sandbox">> {
  const { redis } = parts;
  const { key } = record;
  const now = await redisNow(redis);
  const lease = await readLease(redis, key);
  const { pool, home } = lease;
  const heldBy = holderIn(lease, now);
  const location = {
    pool,
    ...(home === undefined ? {} : { home }),
    ...(heldBy === undefined ? {} : { heldBy }),
  };
  if (state === "running" && heldBy !== undefined) {
    const runningMs = ageOf(record, now);
    const text = `it has run${forHowLong(runningMs)} on ${heldBy}`;
    return {
      ...location,
      state: "running",
      ...splitReasons([{ code: "running", text }]),
      ...defined({ runningMs }),
    };
  }
  const queued = queuedId(record.id, Math.max(record.added, 1));
  const { position, isTaken } = await positionOf(redis, key, queued);
  const reasons: Reason[] = [];
  const add = (code: WhyCode, text: string) => reasons.push({ code, text });
  const paused = (await redis.sismember(redisKeys.paused, tenantOf(key))) === 1;
  if (paused) add("tenant-paused", `the tenant ${tenantOf(key)} is paused`);
  if (state === "running") add("worker-gone", "its worker is gone; another is to settle it");
  if (lease.trouble) add("sandbox-trouble", `no sandbox could be had for it: ${lease.trouble}`);
  const running = heldBy === undefined ? [] : await runningJobs(redis, key);
  const blocker = running.find(({ session, jobId }) => session === record.session && jobId !== record.id);
  const behind = blocker && behindOf(blocker, now);
  if (behind) add("session-busy", `${busyText(behind)} on ${heldBy}`);
  else if (heldBy !== undefined) reasons.push(heldReason(heldBy, running.length, isTaken));
  else if (!paused) reasons.push((await heldCeiling(redis, key)) ?? (await unheldReason(parts, key, lease)));
  if (position !== undefined && position > 0)
    add("jobs-before", `${position} jobs of its sandbox are before it`);
  const shown = state === "running" ? "running" : "waiting";
  return { ...location, state: shown, ...splitReasons(reasons), ...defined({ position, behind }) };
}

function splitReasons(reasons: readonly Reason[]): Pick<Why, "reasons" | "codes"> {
  return { reasons: reasons.map(({ text }) => text), codes: reasons.map(({ code }) => code) };
}

function behindOf({ jobId, tenant, session, begunAtMs }: RunningJob, now: number): Behind {
  return { jobId, tenant, session, ...defined({ runningMs: ageOf({ begunAtMs }, now) }) };
}

/** Undefined if its start is unknown. */
function ageOf({ begunAtMs }: { readonly begunAtMs: number }, now: number): number | undefined {
  return begunAtMs === 0 ? undefined : Math.max(0, now - begunAtMs);
}

/** Its sandbox has a holder, and its session has no running job. */
function heldReason(heldBy: string, running: number, isTaken: boolean): Reason {
  if (running > 0) {
    const jobs = running === 1 ? "one other job of it runs" : `${running} other jobs of it run`;
    return { code: "sandbox-held", text: `its sandbox is held by ${heldBy}, where ${jobs}` };
  }
  if (!isTaken)
    return { code: "sandbox-held", text: `its sandbox is held by ${heldBy}, which has not taken it yet` };
  return {
    code: "about-to-begin",
    text: `${heldBy} has taken it, and starts its sandbox or waits until fewer jobs run there (BERTH_MAX_RUNNING)`,
  };
}

/** Undefined: its tenant may have another held sandbox. */
async function heldCeiling(redis: Redis, key: SandboxKey): Promise<Reason | undefined> {
  const tenant = tenantOf(key);
  const [{ heldSandboxes: limit }, held] = await Promise.all([
    readCeilings(redis, tenant),
    redis.zcard(redisKeys.heldOf(tenant)),
  ]);
  if (limit === 0 || held < limit) return undefined;
  const text = `workers hold ${held} sandboxes of ${tenant}, and its ceiling heldSandboxes is ${limit}`;
  return { code: "tenant-full", text };
}

async function unheldReason(
  { offers, fleet }: WhyParts,
  key: SandboxKey,
  target: OfferTarget,
): Promise<Reason> {
  const { pool, home } = target;
  const workers = (await fleet.workers()).filter(({ pools }) => pools.includes(pool));
  if (workers.length === 0) return { code: "no-worker", text: `no worker of the pool ${pool} is there` };
  const able = workers.filter(({ host }) => home === undefined || host === home);
  if (able.length === 0) {
    return { code: "host-offline", text: `its workspace is on the host ${home}, which is offline` };
  }
  const well = able.filter(({ health }) => health === "ok");
  if (well.length === 0) {
    return { code: "no-engine", text: `no worker that could take it has an engine: ${able[0]?.health}` };
  }
  const before = await offers.before(key, target);
  const line = before === undefined ? "it is about to be offered" : `${before} sandboxes are before its own`;
  if (well.some(({ slots, held }) => held < slots))
    return { code: "about-to-be-taken", text: `a worker is about to take its sandbox; ${line}` };
  const slots = well.reduce((sum, worker) => sum + worker.slots, 0);
  const where = home === undefined ? "" : ` on ${home}, which has its workspace,`;
  const text = `no slot is free: the workers of the pool ${pool}${where} hold ${slots} of ${slots} sandboxes; ${line}`;
  return { code: "no-slot", text };
}

interface Position {
  /** How many jobs are before it in the sandbox's queue; 0 once it was taken. Undefined: it is not in the queue. */
  readonly position: number | undefined;
  readonly isTaken: boolean;
}

async function positionOf(redis: Redis, key: SandboxKey, queued: string): Promise<Position> {
  const [wait = "", active = "", prioritized = ""] = unfinishedKeys(key);
  const waiting = await redis.lpos(wait, queued);
  if (waiting !== null) return { position: (await redis.llen(wait)) - 1 - waiting, isTaken: false };
  const rank = await redis.zrank(prioritized, queued);
  if (rank !== null) return { position: (await redis.llen(wait)) + rank, isTaken: false };
  const isTaken = (await redis.lpos(active, queued)) !== null;
  return { position: isTaken ? 0 : undefined, isTaken };
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
