import { Fault, sandboxKey } from "@berth/protocol";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../src/clock.ts";
import { EngineHealth } from "../src/engine-health.ts";

/** A clock that the test sets. Its sleeps last a moment each, however long they were asked to. */
function healthOf(check: () => Promise<unknown>) {
  const seen: string[] = [];
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  let nowMs = 0;
  const clock = {
    ...systemClock,
    now: () => nowMs,
    sleep: (_ms: number, signal?: AbortSignal) => systemClock.sleep(1, signal),
  };
  const health = new EngineHealth({ check, clock, onChange: ({ state }) => seen.push(state) });
  const fail = (tenant: string, fault: Fault = broken(tenant)) =>
    health.startFailed(sandboxKey.parse(tenant), fault, stopping.signal);
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { health, seen, fail, pass };
}

const broken = (sandboxKey: string) => new Fault("sandbox-start-failed", { sandboxKey, detail: "planned" });
const anyPlace = { livesHere: false };
const homePlace = { livesHere: true };

test("one tenant whose sandbox never starts does not degrade a worker whose engine answers", async () => {
  let checks = 0;
  const { health, seen, fail } = healthOf(async () => checks++);
  for (let round = 1; round <= 5; round++) {
    fail("acme");
    fail("acme.s.other");
    await expect.poll(() => checks).toBe(round);
    expect(health.admits(anyPlace)).toBe(true);
  }
  expect(seen).toEqual([]);
});

test("a worker whose starts fail for three tenants takes only its own, and few new ones, until one works", () => {
  const { health, seen, fail, pass } = healthOf(async () => {});
  fail("acme");
  fail("globex");
  expect(health.admits(anyPlace)).toBe(true);
  fail("initech");
  expect(health.state).toMatchObject({
    state: "failing",
    why: "sandboxes of 3 tenants did not start, the last because of sandbox-start-failed",
    detail: expect.stringContaining("planned"),
  });
  const admitted = () => [health.admits(anyPlace), health.admits(homePlace)];
  expect(admitted()).toEqual([false, true]);
  pass(2_000);
  expect(admitted()).toEqual([true, true]);
  health.tried();
  fail("umbrella");
  pass(2_000);
  expect(admitted(), "the pause grows").toEqual([false, true]);
  pass(2_000);
  expect(admitted()).toEqual([true, true]);
  health.tried();
  health.started();
  expect(admitted()).toEqual([true, true]);
  expect(seen).toEqual(["failing", "ok"]);
});

test("a start that works in between keeps three failed ones from degrading the worker", () => {
  const { seen, fail, health } = healthOf(async () => {});
  fail("acme");
  fail("globex");
  health.started();
  fail("initech");
  expect(seen).toEqual([]);
});

test("a failed start that reveals a failing check stops the worker from taking anything until the check passes", async () => {
  let isBroken = true;
  const { health, seen, fail } = healthOf(async () => {
    if (isBroken) throw new Error("the disk is gone");
  });
  fail("acme");
  await expect.poll(() => health.state).toEqual({ state: "away", why: "the disk is gone" });
  expect([health.admits(anyPlace), health.admits(homePlace)]).toEqual([false, false]);
  isBroken = false;
  await expect.poll(() => health.state.state).toBe("ok");
  expect(seen).toEqual(["away", "ok"]);
});
