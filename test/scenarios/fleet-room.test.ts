import type { Berth } from "@berth/client";
import { describe, expect } from "vitest";
import { busybox, type TestFleet, test } from "../support/fleet.ts";

/** Sandboxes that stay warm until others need their slots. */
const warm = { ...busybox, BERTH_IDLE_MS: "600000", BERTH_MAX_SANDBOXES: "2" };

async function fill(berth: Berth, tenants: readonly string[]): Promise<void> {
  await Promise.all(tenants.map((tenant) => berth.tenant(tenant).exec("true")));
}

/** Which of the tenants still have the container that they had. */
async function kept(fleet: TestFleet, before: ReadonlySet<string>): Promise<number> {
  return (await fleet.containers()).filter(({ id }) => before.has(id)).length;
}

async function containerIds(fleet: TestFleet): Promise<Set<string>> {
  return new Set((await fleet.containers()).map(({ id }) => id));
}

describe("fleet whose slots are all taken by idle sandboxes", () => {
  test("a fleet full of idle sandboxes removes one container for one new tenant", {
    timeout: 120_000,
  }, async ({ fleet }) => {
    for (const id of ["worker-1", "worker-2", "worker-3"]) await fleet.worker(id, warm);
    const berth = fleet.client();
    await fill(berth, ["a", "b", "c", "d", "e", "f"]);
    for (const tenant of ["g", "h", "i"]) {
      const before = await containerIds(fleet);
      expect(before.size).toBe(6);
      await berth.tenant(tenant).exec("true");
      expect(await kept(fleet, before)).toBe(5);
    }
  });

  test("a fleet full of idle sandboxes removes as many containers as new tenants come at once", {
    timeout: 120_000,
  }, async ({ fleet }) => {
    await fleet.worker("worker-1", { ...warm, BERTH_MAX_SANDBOXES: "6" });
    const berth = fleet.client();
    await fill(berth, ["a", "b", "c", "d", "e", "f"]);
    const before = await containerIds(fleet);
    await fill(berth, ["g", "h"]);
    expect({ before: before.size, kept: await kept(fleet, before) }).toEqual({ before: 6, kept: 4 });
  });
});
