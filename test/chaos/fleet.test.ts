import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { JobEvents, MarkerWaits, OfferTaker, submitJob } from "@berth/ledger";
import { fleetQueuePrefix, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, test } from "../support/fleet.ts";
import type { HistoryJob } from "../support/history.ts";
import { exec, plannedLoad } from "../support/load.ts";
import { historyJob, LoadRun } from "../support/load-run.ts";

const brisk = { ...busybox, BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };
const producerProgram = fileURLToPath(new URL("../support/load-producer.ts", import.meta.url));
const acme = sandboxKey.parse("acme");

function found(run: LoadRun) {
  return run.submit(exec("acme", "job", "echo found"));
}

describe("producer that dies between its two steps", () => {
  test("the sweep offers the sandbox of a producer that died after adding its job and before offering it", async ({
    fleet,
  }) => {
    const run = new LoadRun(fleet.client());
    // No worker listens yet, and the offer is removed: what a producer killed before offering leaves behind.
    const job = await found(run);
    const redis = fleet.redis.connect();
    expect(
      await redis.del(
        ...["prioritized", "o-acme", "marker"].map((name) => `${fleetQueuePrefix}:offers:${name}`),
      ),
    ).toBe(3);
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
    await fleet.provesSound(await run.jobs());
  });
});

describe("producers that are killed while they hand jobs over", () => {
  test("every job that killed producers had submitted successfully ends", async ({ fleet }) => {
    await fleet.worker("worker-1", brisk);
    const accepted: HistoryJob[] = [];
    for (let seed = 61; seed < 63; seed++) {
      const load = { seed, tenants: 4, sessions: 2, jobs: 2_000, sleepMs: 5 };
      const planned = [...plannedLoad(load)];
      const args = ["--conditions=@berth/source", producerProgram, fleet.redis.url, JSON.stringify(load)];
      const producer = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      const submitted: { position: number; id: string; key: string }[] = [];
      for await (const line of createInterface({ input: producer.stdout })) {
        submitted.push(JSON.parse(line));
        if (submitted.length === 50 + seed) producer.kill("SIGKILL");
      }
      // The order that counts is that of handing over, not that of hearing back.
      for (const { position, id, key } of submitted.sort((a, b) => a.position - b.position)) {
        const one = planned[position];
        if (one) accepted.push(historyJob(one, id, sandboxKey.parse(key)));
      }
    }
    expect(accepted.length).toBeGreaterThan(200);
    await fleet.provesSound(accepted);
  });
});

describe("worker that dies between taking an offer and settling it", () => {
  test("a worker that dies after taking an offer does not keep the sandbox from being offered again", async ({
    fleet,
  }) => {
    const run = new LoadRun(fleet.client());
    const job = await found(run);
    const target = { pool: "default", home: undefined };
    const redis = fleet.redis.connect("blocking");
    const taker = new OfferTaker(redis, "a-taker-that-dies", target, new MarkerWaits(redis, "a-taker"));
    await expect.poll(async () => (await taker.next())?.key).toBe("acme");
    await taker.close();
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
    await fleet.provesSound(await run.jobs());
  });
});

describe("poisoned job", () => {
  test("a poisoned job ends as refused and does not block its tenant", async ({ fleet }) => {
    await fleet.worker("worker-1", brisk);
    const run = new LoadRun(fleet.client());
    const redis = fleet.redis.connect();
    const named = { id: "poison", tenant: "acme", session: "main", attempt: 1, priority: 0 };
    await submitJob(redis, acme, { ...named, version: 9, request: { kind: "exec" } } as never);
    expect((await (await found(run)).result).value.stdout).toBe("found\n");
    expect(await new JobEvents(redis).progress(acme, "poison")).toMatchObject({
      state: "finished",
      result: { outcome: { kind: "refused", code: "invalid-job" } },
    });
    const poisoned = { id: "poison", key: acme, session: "main", repeatable: false };
    await fleet.provesSound([poisoned, ...(await run.jobs())]);
  });
});
