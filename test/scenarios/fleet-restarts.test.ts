import { describe, expect } from "vitest";
import { busybox, type TestWorker, test } from "../support/fleet.ts";
import { plannedLoad } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

const brisk = { ...busybox, BERTH_LEASE_MS: "4000", BERTH_SWEEP_MS: "500", BERTH_QUANTUM_MS: "1000" };
/** Longer than a busy machine stands still. A worker that stops gives its leases back; none has to run out. */
const patient = { ...brisk, BERTH_LEASE_MS: "30000" };

/** Hands jobs over one after another while something else happens. */
async function underLoad(run: LoadRun, load: Parameters<typeof plannedLoad>[0]): Promise<void> {
  for (const planned of plannedLoad(load)) await run.submit(planned);
}

describe("fleet whose workers are restarted one after another, under load", () => {
  test("a rolling restart under load loses nothing, repeats nothing and keeps every session's order", {
    timeout: 120_000,
  }, async ({ fleet }) => {
    const workers: TestWorker[] = [
      await fleet.worker("worker-1", patient),
      await fleet.worker("worker-2", patient),
    ];
    const run = new LoadRun(fleet.client());
    const loading = underLoad(run, { seed: 11, tenants: 6, sessions: 3, jobs: 600, sleepMs: 120 });
    const drains: number[] = [];
    for (const index of [0, 1, 0]) {
      const old = workers[index];
      if (!old) throw new Error("two workers");
      const stoppedAt = performance.now();
      old.signal("SIGTERM");
      expect(await old.ended()).toBe(0);
      drains.push(Math.round(performance.now() - stoppedAt));
      workers[index] = await fleet.worker(old.id, patient);
    }
    await loading;
    const results = await run.results();
    console.log(`three workers drained under load in ${drains.join(", ")} ms`);
    expect(results.map(({ outcome }) => outcome.kind)).not.toContain("lost");
    expect(new Set(results.map(({ outcome }) => outcome.kind))).toEqual(new Set(["exited", "done"]));
    await fleet.provesSound(await run.jobs());
  });
});

describe("session's jobs", () => {
  test("a session's jobs keep their order over workers that are killed and come back", {
    timeout: 120_000,
  }, async ({ fleet, topology }) => {
    const workers = [await fleet.worker("worker-1", brisk), await fleet.worker("worker-2", brisk)];
    const run = new LoadRun(fleet.client());
    const loading = underLoad(run, { seed: 12, tenants: 4, sessions: 2, jobs: 400, sleepMs: 120 });
    for (const index of [0, 1]) {
      const victim = workers[index];
      if (!victim) throw new Error("two workers");
      await expect.poll(() => victim.log).toContain("job.finished");
      victim.signal("SIGKILL");
      await victim.ended();
      workers[index] = await fleet.worker(victim.id, brisk);
    }
    await loading;
    const kinds = Object.groupBy(await run.results(), ({ outcome }) => outcome.kind);
    const lost = kinds.lost?.length ?? 0;
    console.log(`two workers killed under load: ${lost} of 400 jobs lost, the others ended`);
    expect(new Set(Object.keys(kinds)).difference(new Set(["exited", "done", "lost"]))).toEqual(new Set());
    // Each worker ran four jobs of a sandbox at most, and held four sandboxes.
    expect(lost).toBeLessThanOrEqual(2 * 4 * 2);
    await fleet.provesSound(await run.jobs(), { isPublishedOnce: topology !== "cluster" });
  });
});
