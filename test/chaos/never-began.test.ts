import { setTimeout as wait } from "node:timers/promises";
import { takenKey } from "@berth/ledger";
import { queuePrefix, type SandboxKey, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, type TestWorker, test } from "../support/fleet.ts";
import { exec } from "../support/load.ts";
import { LoadRun } from "../support/load-run.ts";

const leaseMs = 3_000;
const brisk = { ...busybox, BERTH_LEASE_MS: String(leaseMs), BERTH_SWEEP_MS: "250" };
const tenants = Array.from({ length: 5 }, (_, index) => `tenant-${index}`);

/** Jobs that must not be repeated, each the first of its sandbox; given back when all are taken and their sandboxes are being opened. */
async function whileOpening(fleet: TestFleet): Promise<{ run: LoadRun; worker: TestWorker }> {
  const worker = await fleet.worker("worker-1", brisk);
  const run = new LoadRun(fleet.client());
  const redis = fleet.redis.connect();
  // One that was quick has ended by now.
  const taken = async (key: SandboxKey) =>
    (await redis.llen(takenKey(key))) > 0 || (await redis.exists(`${queuePrefix(key)}:jobs:completed`)) > 0;
  for (const tenant of tenants) await run.submit(exec(tenant, `${tenant}.only`));
  const all = async () =>
    (await Promise.all(tenants.map((tenant) => taken(sandboxKey.parse(tenant))))).every(Boolean);
  await expect.poll(all, { interval: 5 }).toBe(true);
  return { run, worker };
}

describe("jobs whose sandboxes are being opened", () => {
  test("jobs of opening sandboxes run once when Redis freezes for longer than a lease", async ({ fleet }) => {
    const { run } = await whileOpening(fleet);
    fleet.redis.freeze();
    await wait(1.8 * leaseMs);
    fleet.redis.thaw();
    expect((await run.results()).map(({ outcome }) => outcome)).toEqual(
      tenants.map(() => ({ kind: "exited", code: 0 })),
    );
    await fleet.provesSound(await run.jobs());
  });

  test("jobs of opening sandboxes run once when their only worker freezes for longer than a lease", async ({
    fleet,
  }) => {
    const { run, worker } = await whileOpening(fleet);
    worker.signal("SIGSTOP");
    await wait(1.8 * leaseMs);
    worker.signal("SIGCONT");
    expect((await run.results()).map(({ outcome }) => outcome)).toEqual(
      tenants.map(() => ({ kind: "exited", code: 0 })),
    );
    await fleet.provesSound(await run.jobs());
  });
});
