import type { EnqueuedJob } from "@berth/client";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";
import { type Start, startsOf } from "../support/history.ts";
import { plan } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

const sessions = 200;
const workers = ["worker-1", "worker-2"];
const few = { ...busybox, BERTH_MAX_SANDBOXES: "1", BERTH_QUANTUM_MS: "100" };

/** Two jobs for each of a tenant's session sandboxes: after the first, a sandbox yields and waits again, now for its host. */
async function flood(run: LoadRun): Promise<EnqueuedJob[]> {
  const request = { kind: "exec", command: "sleep 0.3" } as const;
  const jobs: EnqueuedJob[] = [];
  for (let index = 0; index < sessions; index++)
    for (let job = 0; job < 2; job++)
      jobs.push(
        await run.submit(
          plan({ tenant: "flood", scope: "session", session: `s${index}`, request }, undefined),
        ),
      );
  return jobs;
}

async function redisMs(fleet: TestFleet): Promise<number> {
  const [seconds = 0, microseconds = 0] = await fleet.redis.connect().time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Sandboxes of a tenant that workers took in that time: an epoch is Redis' time of the take. */
function takenBetween(starts: readonly Start[], tenant: string, fromMs: number, toMs: number): number {
  const taken = starts.filter(
    ({ job, epoch }) => job.key.startsWith(`${tenant}.`) && epoch > fromMs && epoch < toMs,
  );
  return new Set(taken.map(({ job, epoch }) => `${job.key} ${epoch}`)).size;
}

async function sharesSlots(fleet: TestFleet): Promise<void> {
  const berth = fleet.client();
  const run = new LoadRun(berth);
  const flooding = await flood(run);
  const last = flooding.at(-1);
  for (const id of workers) await fleet.worker(id, few);
  // Sandboxes of the flood wait in both places: new ones for any host, and those that had a turn for theirs.
  let ended = 0;
  for (const { result } of flooding) void result.then(() => ended++);
  await expect.poll(() => ended, { timeout: 60_000 }).toBeGreaterThan(4);
  const ahead = async () => (await berth.why(last?.id ?? "")).reasons.join();
  await expect.poll(ahead).toMatch(/no slot is free: .* hold 2 of 2 sandboxes; 1\d\d sandboxes are before/);

  const acme = await run.submit(
    plan({ tenant: "acme", request: { kind: "exec", command: "true" } }, undefined),
  );
  const offeredMs = await redisMs(fleet);
  expect((await acme.result).outcome).toEqual({ kind: "exited", code: 0 });
  const { epoch = 0 } = (await berth.sandboxes({ tenant: "acme" }))[0] ?? {};
  expect(epoch).toBeGreaterThan(0);
  for (const { id } of flooding) await berth.cancel(id);
  await run.results();
  const jobs = await run.jobs();
  const between = takenBetween(startsOf(await fleet.history(jobs)), "flood", offeredMs, epoch);
  // What each worker had at hand, and one whose turn it was among those that live on its host.
  expect(between).toBeLessThanOrEqual(2 * workers.length);
  await fleet.provesSound(jobs);
}

describe("tenant with hundreds of session sandboxes on a fleet of two slots", () => {
  test(
    "a job of another tenant does not wait behind hundreds of sandboxes of one tenant",
    {
      timeout: 180_000,
    },
    async ({ fleet }) => sharesSlots(fleet),
  );
});
