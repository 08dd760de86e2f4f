import { JobQueues, OfferTaker } from "@berth/queue";
import { JobEvents } from "@berth/streams";
import { describe, expect } from "vitest";
import { test } from "../support/fleet.ts";

const brisk = { BERTH_LEASE_MS: "3000", BERTH_SWEEP_MS: "500" };

describe("a producer that dies between its two steps", () => {
  test("is made up for by the sweep", async ({ fleet }) => {
    const acme = fleet.client().tenant("acme");
    // Nobody listens yet, and the offer is taken away: what a producer killed before offering leaves behind.
    const job = await acme.exec("echo found").enqueued();
    const redis = fleet.redis.connect();
    await redis.del("berth:offers:wait", "berth:offers:o-acme", "berth:offers:marker");
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
  });
});

describe("a worker that dies between taking an offer and settling it", () => {
  test("does not keep the sandbox from being offered again", async ({ fleet }) => {
    const job = await fleet.client().tenant("acme").exec("echo found").enqueued();
    const taker = new OfferTaker(fleet.redis.connect("blocking"), "a-taker-that-dies", {
      pool: "default",
      home: undefined,
    });
    await expect.poll(async () => (await taker.next())?.key).toBe("acme");
    await taker.close();
    await fleet.worker("worker-1", brisk);
    expect((await job.result).value.stdout).toBe("found\n");
  });
});

describe("a poisoned job", () => {
  test("ends as refused and does not block its tenant", async ({ fleet }) => {
    await fleet.worker("worker-1");
    const acme = fleet.client().tenant("acme");
    await acme.exec("true");
    const redis = fleet.redis.connect();
    const queues = new JobQueues(redis);
    await queues.add(
      "acme" as never,
      { version: 9, id: "poison", request: { kind: "exec" }, priority: 0 } as never,
      async () => {},
    );
    expect((await acme.exec("echo fine")).value.stdout).toBe("fine\n");
    const progress = await new JobEvents(redis).progress("acme" as never, "poison");
    expect(progress).toMatchObject({
      state: "finished",
      result: { outcome: { kind: "refused", code: "invalid-job" } },
    });
    await queues.close();
  });
});
