import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { startsOf } from "../support/history.ts";
import { exec } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

describe("two hundred tenants on eight slots", () => {
  test("two hundred tenants on eight slots all get their turn, those with much work again and again", {
    timeout: 240_000,
  }, async ({ fleet }) => {
    const slots = { ...busybox, BERTH_MAX_SANDBOXES: "4", BERTH_QUANTUM_MS: "500" };
    await fleet.worker("worker-1", slots);
    await fleet.worker("worker-2", slots);
    const run = new LoadRun(fleet.client());
    const began = performance.now();
    // Eight with more work than one turn is for.
    for (let turn = 0; turn < 8; turn++)
      for (let busy = 0; busy < 8; busy++)
        await run.submit(exec(`busy-${busy}`, `b${busy}.${turn}`, "sleep 0.3"));
    const others = Array.from({ length: 192 }, (_, index) =>
      run.submit(exec(`tenant-${index}`, `t${index}`)),
    );
    let lastTurnMs = 0;
    const turnsTaken = others.map(async (job) => {
      await (await job).result;
      lastTurnMs = performance.now() - began;
    });
    let heldMost = 0;
    let waiting = true;
    const looking = (async () => {
      for (; waiting; await sleep(500)) heldMost = Math.max(heldMost, (await fleet.containers()).length);
    })();
    await Promise.all(turnsTaken);
    waiting = false;
    await looking;
    await run.results(200_000);
    const endedMs = performance.now() - began;
    const jobs = await run.jobs();
    const starts = startsOf(await fleet.history(jobs));
    const turns = new Set(starts.map(({ job, epoch }) => `${job.key} ${epoch}`)).size;
    const seconds = (ms: number) => (ms / 1_000).toFixed(1);
    console.log(
      `200 tenants on 8 slots: the last first turn after ${seconds(lastTurnMs)} s, ${turns} turns in ${seconds(endedMs)} s`,
    );
    // Each worker may be removing one of the parked containers, which counts as held until it is gone.
    expect(heldMost).toBeLessThanOrEqual(8 + 2);
    // The busy ones had to give their slots up in the middle of their work.
    expect(turns).toBeGreaterThan(200);
    await fleet.provesSound(jobs);
  });
});
