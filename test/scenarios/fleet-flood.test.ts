import { setTimeout as sleep } from "node:timers/promises";
import type { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import { plan } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

const others = 9;
const seconds = 8;

/** Each of nine tenants sends a job a second; how long each job took to come back, by tenant. */
async function aJobASecond(run: LoadRun): Promise<number[][]> {
  return Promise.all(
    Array.from({ length: others }, async (_, index) => {
      const waits: Promise<number>[] = [];
      await sleep((index * 1_000) / others);
      for (let second = 0; second < seconds; second++) {
        const sent = performance.now();
        const order = { tenant: `tenant-${index}`, request: { kind: "exec", command: "true" } } as const;
        const job = run.submit(plan(order, undefined));
        waits.push(job.then(async ({ result }) => result.then(() => performance.now() - sent)));
        await sleep(1_000);
      }
      return Promise.all(waits);
    }),
  );
}

/** Ten thousand jobs in four sessions, so that the flood takes all that one tenant may. */
async function flood(berth: Berth): Promise<LoadRun> {
  const run = new LoadRun(berth);
  for (let handed = 0; handed < 10_000; handed += 500) {
    const jobs = Array.from({ length: 500 }, (_, index) => {
      const request = { kind: "exec", command: "true" } as const;
      return run.submit(plan({ tenant: "flood", session: `s${index % 4}`, request }, undefined));
    });
    // Handed over in parts, or this process would measure its own busyness.
    await Promise.all(jobs);
  }
  return run;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Jain's index: 1 when all have the same, 1/n when one has everything. */
function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum ** 2 / (values.length * values.reduce((total, value) => total + value ** 2, 0));
}

describe("tenant that floods its queue with ten thousand jobs", () => {
  test("a tenant that floods its queue with ten thousand jobs delays nine others little", {
    timeout: 240_000,
  }, async ({ fleet }) => {
    const slots = { ...busybox, BERTH_MAX_SANDBOXES: "5" };
    await fleet.worker("worker-1", slots);
    await fleet.worker("worker-2", slots);
    const berth = fleet.client();
    const run = new LoadRun(berth);
    await Promise.all(
      Array.from({ length: others }, (_, index) => berth.tenant(`tenant-${index}`).exec("true")),
    );
    const alone = (await aJobASecond(run)).flat();
    const began = performance.now();
    const producer = await flood(fleet.client());
    const flooded = await aJobASecond(run);
    const waits = flooded.flat();
    const results = await producer.results(150_000);
    const rate = Math.round(results.length / ((performance.now() - began) / 1_000));
    const [before, beside] = [percentile(alone, 0.95), percentile(waits, 0.95)];
    // About a second, and more on a machine that is busy already.
    const bound = 5 * before + 1_000;
    // What a tenant asked for is a job a second: its share is how many came back within the bound.
    const shares = flooded.map((each) => each.filter((wait) => wait < bound).length / seconds);
    console.log(
      `a flood of 10,000 jobs (${rate} a second): p95 of nine others ${beside.toFixed(0)} ms, alone ${before.toFixed(0)} ms; Jain's index of their shares ${jain(shares).toFixed(3)}`,
    );
    expect(results).toHaveLength(10_000);
    expect(beside).toBeLessThan(bound);
    expect(jain(shares)).toBeGreaterThan(0.9);
    await fleet.provesSound([...(await run.jobs()), ...(await producer.jobs())]);
  });
});
