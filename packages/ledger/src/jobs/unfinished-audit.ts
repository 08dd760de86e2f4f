import { type JobResult, redisKeys, type SandboxKey } from "@berth/protocol";
import { type Redis, Script } from "@berth/redis";
import { z } from "zod";
import { stagedKeptMs, walkedMost } from "../events/job-events.ts";
import { boardArguments, endedEntry } from "../queues/board-entry.ts";
import { inboxKey, keptMs } from "../queues/exchange.ts";
import { completedKey, entryPrefix, failedKey, finishedKept, queueKeys } from "../queues/queue-layout.ts";
import { findQueued } from "../queues/submit.ts";
import { redisNow } from "../redis-now.ts";
import { scheduledEntryKey } from "../schedule/schedule.ts";
import { isCluster, runInSlot } from "../slots.ts";
import { inboxOf } from "./cancellation.ts";
import { type JobRecord, readJobRecord, unfinishedBefore } from "./job-record.ts";

const audit = new Script({
  name: "audit",
  file: new URL("../../lua/audit.lua", import.meta.url),
  parse: (reply) =>
    z
      .union([
        z.tuple([z.literal(["ended", "finished-before"])]).transform(([word]) => word),
        z
          .tuple([z.literal("kept"), z.literal(["queued", "scheduled", "running", "changed"])])
          .transform(([word]) => word),
      ])
      .parse(reply),
});
const vanished: JobResult = {
  outcome: { kind: "lost", message: "the job was in no queue, and no worker ran it" },
  value: {},
  timing: { wallMs: 0, cpuMs: 0 },
};

/** An accepted job that no process would have ended. */
export interface VanishedJob {
  readonly key: SandboxKey;
  readonly jobId: string;
}

/**
 * Checks a page of unfinished jobs, the oldest first, and ends as lost those that no queue, schedule or worker has. So
 * every job ends, also after Redis lost data. `next`: the `from` of the next page; 0 after the last one.
 */
export async function auditUnfinished(
  redis: Redis,
  page: { readonly from: number; readonly limit: number; readonly olderThanMs: number },
): Promise<{ readonly vanished: readonly VanishedJob[]; readonly next: number }> {
  const beforeMs = (await redisNow(redis)) - page.olderThanMs;
  const ids = await unfinishedBefore(redis, beforeMs, page.from, page.limit);
  const found: VanishedJob[] = [];
  let left = ids.length;
  for (const id of ids) {
    const record = await readJobRecord(redis, id);
    if (!record) {
      if (await dropUnknown(redis, id)) left--;
      continue;
    }
    const answer = await auditOne(redis, record);
    if (answer !== "kept") left--;
    if (answer === "ended") found.push({ key: record.key, jobId: id });
  }
  return { vanished: found, next: ids.length < page.limit ? 0 : page.from + left };
}

async function auditOne(
  redis: Redis,
  { id, key, added }: JobRecord,
): Promise<"ended" | "finished-before" | "kept"> {
  const queue = queueKeys(key, id, added);
  const inbox = inboxOf(await findQueued(redis, key, queue.queuedId));
  const lastEvent = (await isCluster(redis)) ? await lastEventId(redis, redisKeys.events(key, id)) : "";
  const scheduled = [scheduledEntryKey(id, added), scheduledEntryKey(id, added + 1)];
  const there = await Promise.all(scheduled.map((entry) => redis.exists(entry)));
  const keys = [
    ...[redisKeys.events(key, id), redisKeys.job(key, id), redisKeys.staged(key, id)],
    ...[queue.entryKey, redisKeys.lease(key), completedKey(key), failedKey(key), ...queue.unfinishedKeys],
  ];
  const args = [
    ...[key, id, added, keptMs, inboxKey(inbox), keptMs, vanished.outcome.kind, JSON.stringify(vanished)],
    ...[stagedKeptMs, queue.queuedId, walkedMost, ...scheduled, there.includes(1) ? "1" : ""],
    ...[entryPrefix(key), finishedKept, ...boardArguments(endedEntry(vanished)), lastEvent],
  ];
  return await runInSlot(redis, { key, script: audit, keys, args });
}

async function lastEventId(redis: Redis, stream: string): Promise<string> {
  const [last] = await redis.xrevrange(stream, "+", "-", "COUNT", 1);
  return last?.[0] ?? "";
}

/** Removes a job without a record from the index of unfinished jobs. False: it has a record by now. */
async function dropUnknown(redis: Redis, id: string): Promise<boolean> {
  await redis.zrem(redisKeys.unfinished, id);
  if ((await readJobRecord(redis, id)) === undefined) {
    // A later submission of this id sets the key again, without the expiry.
    await redis.pexpire(redisKeys.sandboxOf(id), keptMs);
    return true;
  }
  await redis.zadd(redisKeys.unfinished, "NX", await redisNow(redis), id);
  return false;
}
