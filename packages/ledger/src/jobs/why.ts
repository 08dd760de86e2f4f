import { redisKeys, type SandboxKey, tenantOf } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import type { JobEvents } from "../events/job-events.ts";
import { type FleetView, redisNow } from "../fleet/fleet-view.ts";
import { holderIn, readLease } from "../leases/lease-record.ts";
import type { Place } from "../leases/leases.ts";
import type { Offers } from "../queues/offers.ts";
import { queuedId, unfinishedKeys } from "../queues/queue-layout.ts";
import { type JobState, readJobRecord, resultIn, type ShownState, stateOf } from "./job-record.ts";

/** Reasons for programs. The sentences beside them name workers, hosts and what went wrong there. */
export const whyCodes = [
  "unknown",
  "ended",
  "due-later",
  "running",
  "tenant-paused",
  "worker-gone",
  "sandbox-trouble",
  "sandbox-held",
  "no-worker",
  "host-offline",
  "no-engine",
  "about-to-be-taken",
  "no-slot",
  "jobs-before",
] as const;
export type WhyCode = (typeof whyCodes)[number];

/** Why a job is where it is. */
export interface Why {
  readonly jobId: string;
  readonly state: "unknown" | ShownState;
  /** For people, the most telling first. */
  readonly reasons: readonly string[];
  /** The same reasons in the same order, for programs. */
  readonly codes: readonly WhyCode[];
  readonly sandbox?: SandboxKey;
  /** Jobs of the sandbox that are before it. */
  readonly position?: number;
  readonly heldBy?: string;
  readonly dueAtMs?: number;
}

interface Reason {
  readonly code: WhyCode;
  readonly text: string;
}

/** Instead of sentences that name workers, hosts, or the trouble of a worker, which may be another tenant's. */
const wordsForTenants: Partial<Readonly<Record<WhyCode, string>>> = {
  running: "it runs",
  "sandbox-trouble": "its sandbox could not be started",
  "sandbox-held": "its sandbox is held by a worker",
  "no-worker": "no worker of its pool is there",
  "host-offline": "the host of its workspace is offline",
  "no-engine": "no worker that could take it can start a sandbox",
};

/** What a tenant may know of it: nothing of the fleet's workers and hosts, or of what other tenants' sandboxes do there. */
export function whyForTenant({ heldBy: _, ...why }: Why): Why {
  const reasons = why.codes.map((code, index) => wordsForTenants[code] ?? why.reasons[index] ?? code);
  return { ...why, reasons };
}

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
    return { jobId, state: "unknown", ...told([{ code: "unknown", text }]) };
  }
  const { key, added } = record;
  const progress = await events.progress(key, jobId);
  const state = stateOf(record, progress);
  if (state === "finished") {
    const text = `it ended: ${resultIn(progress)?.outcome.kind ?? record.outcome}`;
    return { jobId, state: "finished", sandbox: key, ...told([{ code: "ended", text }]) };
  }
  const due = await dueAtMs(key, jobId);
  if (due !== undefined) {
    const text = `it is due at ${new Date(due).toISOString()}`;
    return { jobId, state: "scheduled", sandbox: key, ...told([{ code: "due-later", text }]), dueAtMs: due };
  }
  return await unfinished(parts, { jobId, key, queuedId: queuedId(jobId, Math.max(added, 1)) }, state);
}

async function unfinished(
  parts: WhyParts,
  { jobId, key, queuedId }: { jobId: string; key: SandboxKey; queuedId: string },
  state: JobState,
): Promise<Why> {
  const { redis } = parts;
  const now = await redisNow(redis);
  const lease = await readLease(redis, key);
  const heldBy = holderIn(lease, now);
  const about = { jobId, sandbox: key, ...(heldBy === undefined ? {} : { heldBy }) };
  if (state === "running" && heldBy !== undefined) {
    return { ...about, state: "running", ...told([{ code: "running", text: `it runs on ${heldBy}` }]) };
  }
  const position = await positionOf(redis, key, queuedId);
  const reasons: Reason[] = [];
  const add = (code: WhyCode, text: string) => reasons.push({ code, text });
  const paused = (await redis.sismember(redisKeys.paused, tenantOf(key))) === 1;
  if (paused) add("tenant-paused", `the tenant ${tenantOf(key)} is paused`);
  if (state === "running") add("worker-gone", "its worker is gone; another is to settle it");
  if (lease.trouble) add("sandbox-trouble", `no sandbox could be had for it: ${lease.trouble}`);
  if (heldBy !== undefined) add("sandbox-held", `its sandbox is held by ${heldBy}`);
  else if (!paused) reasons.push(await unheldReason(parts, key, lease));
  if (position !== undefined && position > 0)
    add("jobs-before", `${position} jobs of its sandbox are before it`);
  const shown = state === "running" ? "running" : "waiting";
  return { ...about, state: shown, ...told(reasons), ...(position === undefined ? {} : { position }) };
}

function told(reasons: readonly Reason[]): Pick<Why, "reasons" | "codes"> {
  return { reasons: reasons.map(({ text }) => text), codes: reasons.map(({ code }) => code) };
}

async function unheldReason({ offers, fleet }: WhyParts, key: SandboxKey, place: Place): Promise<Reason> {
  const workers = (await fleet.workers()).filter(({ pools }) => pools.includes(place.pool));
  if (workers.length === 0)
    return { code: "no-worker", text: `no worker of the pool ${place.pool} is there` };
  const able = workers.filter(({ host }) => place.home === undefined || host === place.home);
  if (able.length === 0) {
    return { code: "host-offline", text: `its workspace is on the host ${place.home}, which is offline` };
  }
  const well = able.filter(({ health }) => health === "ok");
  if (well.length === 0) {
    return { code: "no-engine", text: `no worker that could take it has an engine: ${able[0]?.health}` };
  }
  const before = await offers.before(key, place);
  const line = before === undefined ? "it is about to be offered" : `${before} sandboxes are before its own`;
  return well.some(({ slots, held }) => held < slots)
    ? { code: "about-to-be-taken", text: `a worker is about to take its sandbox; ${line}` }
    : { code: "no-slot", text: `no slot is free; ${line}` };
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
