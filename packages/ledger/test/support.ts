import { type CeilingChanges, type Job, job as jobSchema, layerId } from "@berth/protocol";
import type { Redis } from "@berth/redis";
import { ProfileStore } from "../src/profiles/profile-store.ts";
import { MarkerWaits } from "../src/queues/marker-waits.ts";
import { Schedule, type StagingPort } from "../src/schedule/schedule.ts";
import { ScheduleWorker, type ScheduleWorkerOptions } from "../src/schedule/schedule-worker.ts";

export function jobOf(id: string, more: object = {}): Job {
  const request = { kind: "exec", command: "true" };
  return jobSchema.parse({ version: 1, id, tenant: "acme", request, ...more });
}

/** For tests whose requests are too small to be staged. */
export const noStaging: StagingPort = {
  put: () => Promise.reject(new Error("nothing is staged here")),
  accept: () => Promise.reject(new Error("nothing is staged here")),
  take: () => Promise.reject(new Error("nothing is staged here")),
};

export function scheduleOn(redis: Redis): Schedule {
  return new Schedule(redis, noStaging);
}

/** A schedule worker that records the jobs and problems that it gets. */
export function handingOn(redis: Redis, options: Partial<ScheduleWorkerOptions> = {}) {
  const jobs: { id: string; attempt: number; atMs: number }[] = [];
  const trouble: string[] = [];
  const unreadable: string[] = [];
  const refused: string[] = [];
  const worker = new ScheduleWorker({
    redis,
    waits: new MarkerWaits(redis, "handing-on"),
    staging: noStaging,
    schedule: scheduleOn(redis),
    // A loaded machine must not look like a dead worker.
    lockMs: 10_000,
    onJob: async ({ id, attempt }) => jobs.push({ id, attempt, atMs: Date.now() }),
    onRefused: async ({ id }, { code }) => refused.push(`${id}: ${code}`),
    onTick: async () => {},
    onUnreadable: async (id, _data, problem) => unreadable.push(`${id}: ${problem}`),
    onTrouble: (id, message) => trouble.push(`${id}: ${message}`),
    ...options,
  });
  worker.start();
  return { worker, jobs, trouble, unreadable, refused };
}

/** `layer`: a tenant's, or `fleet` for all tenants. */
export async function setCeilings(redis: Redis, ceilings: CeilingChanges, layer = "fleet"): Promise<void> {
  await new ProfileStore(redis).set(layerId.parse(layer), { ceilings }, { by: "test" });
}
