import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { BoundedWait } from "../src/bounded-wait.ts";

describe("bounded wait", () => {
  test("a bounded wait leaves nothing at signals that outlive it, whether its scope or another signal ended it", () => {
    const { signal } = new AbortController();
    const other = new AbortController();
    {
      using wait = new BoundedWait().endWith(signal, other.signal).endAfter(60_000);
      expect([wait.signal.aborted, getEventListeners(signal, "abort").length]).toEqual([false, 1]);
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    const wait = new BoundedWait().endWith(signal, other.signal);
    other.abort("enough");
    expect(wait.signal.reason).toBe("enough");
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  test("a bounded wait is over at once with a signal that has fired, and leaves nothing at others", () => {
    const { signal } = new AbortController();
    const wait = new BoundedWait().endWith(signal, AbortSignal.abort("gone"), signal).endAfter(60_000);
    expect([wait.signal.reason, wait.isLate]).toEqual(["gone", false]);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  test("a bounded wait knows whether its time ended it", async () => {
    const wait = new BoundedWait().endAfter(1);
    // Its own timer lets the process end.
    const alive = setInterval(() => {}, 1_000);
    await new Promise((resolve) => wait.signal.addEventListener("abort", resolve));
    clearInterval(alive);
    expect([wait.isLate, wait.signal.reason.name]).toEqual([true, "TimeoutError"]);
  });
});
