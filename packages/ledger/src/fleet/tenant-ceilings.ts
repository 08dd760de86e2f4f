import {
  type CeilingChanges,
  type CeilingName,
  type Ceilings,
  ceilingChanges,
  ceilingNames,
  ceilingsOf,
  redisKeys,
  type TenantId,
} from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { ceilingFacts } from "../queues/admission.ts";
import { redisNow } from "../redis-now.ts";
import { SnapshotStore } from "../snapshots/snapshot-store.ts";
import { readUsageToday } from "../usage/usage-record.ts";

/** What a tenant has of something, and how much it may have; 0 is no ceiling. */
export interface CeilingUse {
  readonly ceiling: CeilingName;
  /** Undefined: Redis does not count it. */
  readonly used: number | undefined;
  readonly limit: number;
}

/** How much a tenant may have of everything. */
export async function readCeilings(redis: Redis, tenant: string): Promise<Ceilings> {
  const texts = await ceilingFacts(redis, tenant);
  return ceilingsOf(...texts.map((text) => (text === false ? undefined : changesIn(text))));
}

/** By ceiling. Of jobs in the sandbox that all tenants share, the scripts count and compare apart; both are in these numbers. */
export async function readCeilingUses(redis: Redis, tenant: TenantId): Promise<CeilingUse[]> {
  const [limits, used] = await Promise.all([readCeilings(redis, tenant), readUsed(redis, tenant)]);
  return ceilingNames.map((ceiling) => ({ ceiling, used: used[ceiling], limit: limits[ceiling] }));
}

async function readUsed(redis: Redis, tenant: TenantId): Promise<{ [name in CeilingName]?: number }> {
  const owners = [tenant, "shared"];
  const sum = async (counts: readonly Promise<number>[]) =>
    (await Promise.all(counts)).reduce((total, count) => total + count, 0);
  const [jobs, things, today, snapshots, kept] = await Promise.all([
    Promise.all([
      sum(
        owners.flatMap((owner) => [
          redis.zcard(redisKeys.unfinishedOf(owner, tenant)),
          redis.zcard(redisKeys.delayedOf(owner, tenant)),
        ]),
      ),
      sum(owners.map(async (owner) => Number((await redis.get(redisKeys.waitingBytes(owner, tenant))) ?? 0))),
    ]),
    Promise.all([
      redis.zcard(redisKeys.sandboxesOf(tenant)),
      redis.zcard(redisKeys.heldOf(tenant)),
      redis.scard(redisKeys.schedulesOf(tenant)),
      redis.zcard(redisKeys.batchesOpenOf(tenant)),
      redis.zcard(redisKeys.deadOf(tenant)),
      redis.zcard(redisKeys.webhooksOf(tenant)),
    ]),
    redisNow(redis).then((now) => readUsageToday(redis, tenant, now)),
    new SnapshotStore(redis).list(tenant),
    Promise.all([
      redis.hget(redisKeys.workspacesOf(tenant), "*").then((sum) => Number(sum ?? 0)),
      redisNow(redis).then((now) => sum(owners.map((owner) => readResultBytes(redis, owner, tenant, now)))),
    ]),
  ]);
  const [waitingJobs, waitingBytes] = jobs;
  const [workspaceBytes, resultBytes] = kept;
  const [sandboxes, heldSandboxes, schedules, batches, deadLetters, webhooks] = things;
  return {
    ...{ waitingJobs, waitingBytes, sandboxes, heldSandboxes, schedules, batches, deadLetters, webhooks },
    ...{ workspaceBytes, resultBytes },
    snapshots: snapshots.length,
    snapshotBytes: snapshots.reduce((sum, { size }) => sum + size, 0),
    dailyJobs: today.jobs + waitingJobs,
    dailyCpuSeconds: today.cpuSeconds,
    dailyBytes: today.inBytes + today.outBytes + waitingBytes,
  };
}

/** As `result-bytes.lua` adds them. */
async function readResultBytes(redis: Redis, owner: string, tenant: string, nowMs: number): Promise<number> {
  const byHour = Object.entries(await redis.hgetall(redisKeys.resultBytes(owner, tenant)));
  const there = byHour.filter(([hour]) => Number(hour) >= Math.floor(nowMs / 3_600_000));
  return there.reduce((total, [, bytes]) => total + Number(bytes), 0);
}

function changesIn(text: string): CeilingChanges {
  const parsed = ceilingChanges.safeParse(JSON.parse(text));
  return parsed.success ? parsed.data : {};
}
