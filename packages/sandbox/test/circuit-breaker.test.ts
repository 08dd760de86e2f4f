import { describe, expect, test } from "vitest";
import { CircuitBreaker } from "../src/docker/circuit-breaker.ts";

function breaker() {
  const clock = { ms: 0 };
  const made = new CircuitBreaker({ failures: 3, pauseMs: 1000, maxPauseMs: 3000, now: () => clock.ms });
  return { clock, breaker: made };
}

function fail(target: CircuitBreaker, times: number): void {
  for (let count = 0; count < times; count++) {
    target.enter();
    target.failed();
  }
}

describe("circuit breaker", () => {
  test("the circuit breaker stays closed below its number of failures in a row", () => {
    const { breaker: target } = breaker();
    fail(target, 2);
    target.succeeded();
    fail(target, 2);
    expect(() => target.enter()).not.toThrow();
  });

  test("the circuit breaker fails at once while open, and gives the time of the next try", () => {
    const { breaker: target, clock } = breaker();
    fail(target, 3);
    clock.ms = 400;
    expect(() => target.enter()).toThrow("failed 3 times in a row; the next try is in 600 ms");
  });

  test("the circuit breaker lets one call through after the pause, and closes when it succeeds", () => {
    const { breaker: target, clock } = breaker();
    fail(target, 3);
    clock.ms = 1000;
    target.enter();
    expect(() => target.enter()).toThrow("engine");
    target.succeeded();
    expect(() => target.enter()).not.toThrow();
  });

  test("the circuit breaker doubles its pause with each failed try, up to its limit", () => {
    const { breaker: target, clock } = breaker();
    fail(target, 3);
    for (const pause of [1000, 2000, 3000, 3000]) {
      clock.ms += pause - 1;
      expect(() => target.enter()).toThrow("engine");
      clock.ms += 1;
      target.enter();
      target.failed();
    }
  });

  test("a try that its caller gave up leaves the place to another", () => {
    const { breaker: target, clock } = breaker();
    fail(target, 3);
    clock.ms = 1000;
    target.enter();
    target.abandoned();
    expect(() => target.enter()).not.toThrow();
  });
});
