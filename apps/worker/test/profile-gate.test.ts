import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ProfileGate } from "../src/profile-gate.ts";

/** Enters in the name of a job; `log` gets an entry when it is in, and when the sandbox changes for it. */
function entering(gate: ProfileGate, log: string[], job: string, signal = new AbortController().signal) {
  const profile = job.slice(0, 1);
  const change = async () => void log.push(`change to ${profile}`);
  return gate.enter(profile, signal, change).then(
    () => log.push(job),
    () => log.push(`${job} gave up`),
  );
}

describe("gate of a sandbox", () => {
  test("the gate of a sandbox lets a job of another profile in before those of the present one that came after it", async () => {
    const gate = new ProfileGate();
    const log: string[] = [];
    for (const job of ["a1", "a2", "b1", "a3", "b2"]) void entering(gate, log, job);
    await setImmediate();
    expect(log).toEqual(["a1", "a2"]);
    gate.leave();
    await setImmediate();
    expect(log).toEqual(["a1", "a2"]);
    gate.leave();
    await setImmediate();
    expect(log.slice(2)).toEqual(["change to b", "b1"]);
    gate.leave();
    await setImmediate();
    expect(log.slice(4)).toEqual(["change to a", "a3"]);
    gate.leave();
    await setImmediate();
    expect(log.slice(6)).toEqual(["change to b", "b2"]);
  });

  test("the gate of a sandbox is not blocked by a job that gave up, which is not passed before it would have been", async () => {
    const gate = new ProfileGate();
    const log: string[] = [];
    const impatient = new AbortController();
    void entering(gate, log, "a1");
    void entering(gate, log, "b1");
    void entering(gate, log, "c1", impatient.signal);
    void entering(gate, log, "a2");
    await setImmediate();
    impatient.abort();
    await setImmediate();
    expect(log).toEqual(["a1", "c1 gave up"]);
    gate.leave();
    await setImmediate();
    expect(log.slice(2)).toEqual(["change to b", "b1"]);
    gate.leave();
    await setImmediate();
    expect(log.slice(4)).toEqual(["change to a", "a2"]);
  });
});
