import type { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

const crowded = { ...busybox, BERTH_HOST: "here", BERTH_MAX_SANDBOXES: "1", BERTH_QUANTUM_MS: "300" };

async function all(fleet: TestFleet): Promise<string[]> {
  const held = (await fleet.containers()).map(({ id }) => id);
  return [...held, ...(await fleet.parked()).map(({ containerId }) => containerId)].sort();
}

async function eachTenant(berth: Berth, command: string): Promise<string[]> {
  const tenants = ["a", "b", "c", "d"];
  return Promise.all(tenants.map(async (name) => (await berth.tenant(name).exec(command)).stdout.trim()));
}

describe("tenants that take turns in few slots", () => {
  test("tenants that take turns in few slots find their containers parked, on any worker of the host", {
    timeout: 180_000,
  }, async ({ fleet }) => {
    const first = await fleet.worker("worker-1", { ...crowded, BERTH_PARKED_COUNT: "10" });
    const berth = fleet.client();
    await eachTenant(berth, "(sleep 900; true) & hostname > /tmp/mark");
    const before = await all(fleet);
    expect(before).toHaveLength(4);
    await fleet.worker("worker-2", { ...crowded, BERTH_PARKED_COUNT: "10" });
    for (let round = 0; round < 3; round++) {
      const said = await eachTenant(berth, "pgrep sleep | wc -l; cat /tmp/mark");
      // A sandbox that was not given up meanwhile still has what it left in the background.
      expect(said.filter((text) => /^[01]\nsandbox$/.test(text))).toHaveLength(4);
      expect(await all(fleet)).toEqual(before);
    }
    await expect
      .poll(async () => (await berth.workers()).reduce((sum, { parked }) => sum + parked, 0))
      .toBeGreaterThanOrEqual(1);

    first.signal("SIGKILL");
    await first.ended();
    await eachTenant(berth, "true");
    // What the dead worker held was not parked: it is replaced. What it had parked was adopted.
    const kept = (await all(fleet)).filter((id) => before.includes(id));
    expect(kept.length).toBeGreaterThanOrEqual(3);

    // Its next life, and tighter bounds, which count for what others parked, too.
    const again = await fleet.worker("worker-1", { ...crowded, BERTH_PARKED_COUNT: "1" });
    await eachTenant(berth, "true");
    await expect.poll(async () => (await fleet.parked()).length, { timeout: 15_000 }).toBeLessThanOrEqual(1);
    expect(again.log).not.toContain('"level":50');
  });

  test("tenants that take turns in few slots have no container kept where the operator keeps none", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1", { ...crowded, BERTH_PARKED_COUNT: "0" });
    await eachTenant(fleet.client(), "true");
    expect(await fleet.parked()).toEqual([]);
    await expect.poll(async () => (await fleet.containers()).length).toBeLessThanOrEqual(1);
  });
});
