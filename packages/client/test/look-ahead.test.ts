import { describe, expect, test } from "vitest";
import { LookAhead } from "../src/look-ahead.ts";

const order = (tenant: string, more: object = {}) => ({
  tenant,
  request: { kind: "exec" as const, command: "true" },
  ...more,
});

/** Fifty tenants in turn, as a file of a sweep over all of them has it. */
function fiftyTenants(share: number): LookAhead {
  const ahead = new LookAhead(share);
  for (let index = 0; index < 1_000; index++) ahead.add({ index, order: order(`t${index % 50}`) });
  return ahead;
}

function take(ahead: LookAhead, count: number) {
  return Array.from({ length: count }, () => ahead.take()).filter((one) => one !== undefined);
}

const tenantsOf = (taken: ReturnType<typeof take>) => [...new Set(taken.map(({ order }) => order.tenant))];

describe("look-ahead of a batch", () => {
  test("the look-ahead of a batch chooses orders of few sandboxes, up to each one's share, and not of all", () => {
    const taken = take(fiftyTenants(4), 64);
    expect(tenantsOf(taken)).toHaveLength(16);
  });

  test("the look-ahead of a batch follows a job that ended with one of the same sandbox, until that has no more", () => {
    const ahead = fiftyTenants(4);
    const window = take(ahead, 64);
    const seen = new Set(tenantsOf(window));
    for (let round = 0; round < 16 * 16; round++) {
      const ended = window.shift();
      if (ended) ahead.ended(ended);
      window.push(...take(ahead, 1));
      for (const tenant of tenantsOf(window)) seen.add(tenant);
    }
    expect(seen.size).toBe(16);
    expect(tenantsOf(take(ahead, 64))).toHaveLength(16);
  });

  test("the look-ahead of a batch keeps the order of each sandbox", () => {
    const ahead = fiftyTenants(4);
    const byTenant = Map.groupBy(take(ahead, 1_000), ({ order }) => order.tenant);
    for (const taken of byTenant.values()) {
      const indexes = taken.map(({ index }) => index);
      expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    }
    expect(ahead.size).toBe(0);
  });

  test("the look-ahead of a batch fills the window from one sandbox when there is no other", () => {
    const ahead = new LookAhead(1);
    for (let index = 0; index < 10; index++)
      ahead.add({ index, order: order("acme", { session: `s${index}` }) });
    expect(take(ahead, 10)).toHaveLength(10);
  });

  test("the look-ahead of a batch distinguishes sandboxes by their scope", () => {
    const ahead = new LookAhead(1);
    const scoped = { scope: "session" as const };
    ahead.add({ index: 0, order: order("acme", { ...scoped, session: "a" }) });
    ahead.add({ index: 1, order: order("acme", { ...scoped, session: "a" }) });
    ahead.add({ index: 2, order: order("acme", { ...scoped, session: "b" }) });
    expect(take(ahead, 3).map(({ index }) => index)).toEqual([0, 2, 1]);
  });
});
