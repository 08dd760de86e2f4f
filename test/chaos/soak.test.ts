import { setTimeout as wait } from "node:timers/promises";
import { describe, expect } from "vitest";
import { machineEngine } from "../support/engine.ts";
import { busybox, type TestFleet, type TestWorker, test } from "../support/fleet.ts";
import { plannedLoad, seeded } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

/** More, and with other seeds, for a hunt: BERTH_SOAK_TROUBLES=100 BERTH_SOAK_SEED=$RANDOM. */
const troubles = Number(process.env.BERTH_SOAK_TROUBLES ?? 8);
const seed = Number(process.env.BERTH_SOAK_SEED ?? 7);
const brisk = { ...busybox, BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500", BERTH_QUANTUM_MS: "1000" };

type Pick = (below: number) => number;

/** One thing that goes wrong, and is right again when it settles. */
const faults: Readonly<
  Record<string, (fleet: TestFleet, workers: TestWorker[], pick: Pick) => Promise<void>>
> = {
  "a worker is killed": (fleet, workers, pick) => replaced(fleet, workers, pick(workers.length), "SIGKILL"),
  "a worker is restarted": (fleet, workers, pick) =>
    replaced(fleet, workers, pick(workers.length), "SIGTERM"),
  "a worker sleeps": async (_, workers, pick) => {
    const sleeper = workers[pick(workers.length)];
    sleeper?.signal("SIGSTOP");
    await wait(500 + pick(5_000));
    sleeper?.signal("SIGCONT");
  },
  "Redis freezes": async ({ redis }, _, pick) => {
    redis.freeze();
    await wait(200 + pick(4_500));
    redis.thaw();
  },
  "Redis is killed": async ({ redis }) => {
    await redis.kill();
    await redis.start();
  },
  "connections are cut": async ({ redis }) => {
    await redis.cut();
  },
  "a container is removed": async (fleet, _, pick) => {
    const containers = await fleet.containers();
    const one = containers[pick(Math.max(1, containers.length))];
    const gone = one && machineEngine().getContainer(one.id).remove({ force: true });
    // A worker may be removing it at this moment.
    await gone?.catch(() => {});
  },
};

async function replaced(
  fleet: TestFleet,
  workers: TestWorker[],
  index: number,
  signal: NodeJS.Signals,
): Promise<void> {
  const old = workers[index];
  if (!old) return;
  old.signal(signal);
  const end = await old.ended();
  expect(end).toBe(signal === "SIGKILL" ? "SIGKILL" : 0);
  workers[index] = await fleet.worker(old.id, brisk);
}

describe("one trouble after another, under load", () => {
  test("one fault after another, under load, breaks no invariant", {
    timeout: 120_000 + troubles * 10_000,
  }, async ({ fleet }) => {
    const workers: TestWorker[] = [];
    for (const id of ["worker-1", "worker-2", "worker-3"]) workers.push(await fleet.worker(id, brisk));
    const run = new LoadRun(fleet.client());
    const pick = seeded(seed);
    let over = false;
    const loading = (async () => {
      for (const planned of plannedLoad({ seed, tenants: 8, sessions: 3, jobs: 100_000, sleepMs: 150 })) {
        if (over) return;
        await run.submit(planned).catch(() => undefined);
        await wait(20);
      }
    })();
    const all = Object.values(faults);
    for (let trouble = 0; trouble < troubles; trouble++) {
      await wait(pick(1_500));
      await all[pick(all.length)]?.(fleet, workers, pick);
    }
    over = true;
    await loading;
    const results = await run.results(100_000);
    const kinds = Object.entries(Object.groupBy(results, ({ outcome }) => outcome.kind));
    const counts = kinds.map(([kind, all]) => `${all?.length} ${kind}`).join(", ");
    const refusals = results.flatMap(({ outcome }) => (outcome.kind === "refused" ? [outcome] : []));
    console.log(`${troubles} troubles (seed ${seed}) and ${results.length} jobs: ${counts}`);
    // Nothing that was asked for is wrong, and an engine was always there.
    expect(refusals).toEqual([]);
    expect(results.length).toBeGreaterThan(10 * troubles);
    await fleet.provesSound(await run.jobs());
  });
});
