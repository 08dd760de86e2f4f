import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Turns } from "../src/turns.ts";

const { signal } = new AbortController();

/** Takes and ends turns one after the other; gives whose they were. */
async function order(turns: Turns, wanted: readonly (readonly [string, number])[], most: number) {
  const held = await turns.of({ tenant: "first", weight: () => 1 }).take(signal);
  const ran: string[] = [];
  for (const [tenant, weight] of wanted)
    void turns
      .of({ tenant, weight: () => weight })
      .take(signal)
      .then((over) => {
        ran.push(tenant);
        if (ran.length < most) over();
      });
  await setImmediate();
  held();
  await setImmediate();
  return ran;
}

const times = (count: number, tenant: string, weight: number) =>
  Array.from({ length: count }, () => [tenant, weight] as const);

describe("turns of a worker", () => {
  test("turns go to tenants in proportion to their weights, however many jobs each has waiting", async () => {
    const wanted = [...times(100, "flood", 100), ...times(20, "small", 100), ...times(60, "large", 300)];
    const ran = await order(new Turns(1), wanted, 50);
    const share = (tenant: string) => ran.filter((one) => one === tenant).length;
    expect([share("flood"), share("small"), share("large")]).toEqual([10, 10, 30]);
  });

  test("the turns of a worker are not saved up by a tenant that was away", async () => {
    const turns = new Turns(1);
    for (let turn = 0; turn < 50; turn++)
      (await turns.of({ tenant: "busy", weight: () => 1 }).take(signal))();
    const ran = await order(turns, [...times(10, "busy", 1), ...times(10, "new", 1)], 10);
    expect(ran.filter((one) => one === "new")).toHaveLength(5);
  });

  test("turns of jobs that stop waiting go to the others, and none is lost", async () => {
    const turns = new Turns(2);
    const acme = turns.of({ tenant: "acme", weight: () => 1 });
    const [one, two] = [await acme.take(signal), acme.takeNow()];
    expect(acme.takeNow()).toBeUndefined();
    const leaving = new AbortController();
    const left = acme.take(leaving.signal);
    const stays = acme.take(signal);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    one();
    one();
    const three = await stays;
    expect(turns.taken).toBe(2);
    two?.();
    three();
    expect(turns.taken).toBe(0);
  });
});
