import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";
import { Orchestrator } from "../support/orchestrator.ts";

describe("batch on a real fleet", () => {
  test("a batch on a real fleet of two thousand jobs ends each once, and leaves none of their results in its inbox", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const orders = function* () {
      for (let index = 0; index < 2_000; index++) {
        yield { tenant: `tenant-${index % 4}`, request: { kind: "exec" as const, command: "true" } };
      }
    };
    const batch = berth.batch(orders(), { id: "many", inFlight: 200, total: 2_000 });
    for await (const { result } of batch.results()) {
      expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    }
    expect(batch.progress()).toMatchObject({ total: 2_000, submitted: 2_000, finished: 2_000, failed: 0 });
    // Every result was in the inbox; what was read is gone from Redis.
    const redis = fleet.redis.connect();
    const inboxes = await redis.keys(redisKeys.inbox("*"));
    for (const inbox of inboxes) expect(await redis.xlen(inbox)).toBeLessThan(500);
  }, 240_000);

  test("a batch on a real fleet goes on in a second process where the first was killed, and runs nothing twice", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const count = 300;
    const first = new Orchestrator(fleet.redis.url, "batch", "nightly", `${count}`);
    await expect.poll(() => first.lines.length, { timeout: 30_000 }).toBeGreaterThan(50);
    first.kill();
    await first.ended();
    expect(first.lines.length).toBeLessThan(count);
    const second = new Orchestrator(fleet.redis.url, "batch", "nightly", `${count}`);
    expect(await second.ended()).toBe("0");
    const outputs = second.lines
      .sort((a, b) => Number(a.index) - Number(b.index))
      .map(({ stdout }) => stdout);
    expect(outputs).toEqual(Array.from({ length: count }, (_, index) => `${index}\n`));
    const berth = fleet.client();
    const ledgers = await Promise.all(
      [0, 1].map((tenant) => berth.tenant(`tenant-${tenant}`).exec("cat ledger")),
    );
    const ran = ledgers.flatMap(({ stdout }) => (stdout ?? "").trim().split("\n").map(Number));
    expect(ran.sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => index));
  }, 120_000);

  test("a batch on a real fleet waits for a sandbox that is full, and loses nothing", async ({ fleet }) => {
    await fleet.redis.connect().hset(redisKeys.settings, "maxWaitingPerSandbox", 10);
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const orders = Array.from({ length: 100 }, (_, index) => ({
      tenant: "acme",
      request: { kind: "exec" as const, command: `echo ${index} >> ledger` },
    }));
    const batch = berth.batch(orders, { id: "squeezed", inFlight: 50 });
    for await (const { result } of batch.results())
      expect(result.outcome).toEqual({ kind: "exited", code: 0 });
    const value = await berth.tenant("acme").exec("cat ledger");
    expect(value.stdout?.trim().split("\n").map(Number)).toEqual(orders.map((_, index) => index));
  }, 120_000);

  test("a batch on a real fleet cancelled, ends what runs and what waits, and runs nothing more", async ({
    fleet,
  }) => {
    await fleet.worker("worker-1");
    const berth = fleet.client();
    const orders = Array.from({ length: 50 }, () => ({
      tenant: "acme",
      request: { kind: "exec" as const, command: "echo up; sleep 60" },
    }));
    const batch = berth.batch(orders, { id: "regretted", inFlight: 10 });
    const kinds: string[] = [];
    const reading = (async () => {
      for await (const { result } of batch.results()) kinds.push(result.outcome.kind);
    })();
    await expect.poll(() => batch.progress().submitted).toBe(10);
    await batch.cancel();
    await reading;
    expect(kinds).toEqual(Array.from({ length: 10 }, () => "cancelled"));
  });
});
