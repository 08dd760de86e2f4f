import { defaultWaitingLimits, JobEvents, Leases, unfinishedKeys } from "@berth/ledger";
import { epoch, redisKeys, sandboxKey, tenantOf, workerId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../support/redis.ts";

const key = sandboxKey.parse("acme");

describe("a job that ends between being added and being marked", () => {
  test("is known with all that is told of it, and is not made unfinished again", async ({ redis }) => {
    const commands = redis.connect();
    const [leases, events] = [new Leases(commands), new JobEvents(commands)];
    const taken = await leases.take(key, { worker: workerId.parse("w"), instance: "i" }, 60_000);
    const to = { key, epoch: epoch.parse(taken.taken && taken.epoch), instance: "i", jobId: "early" };
    const result = { outcome: { kind: "done" }, value: {}, timing: { wallMs: 0, cpuMs: 0 } } as const;
    await events.publish(to, [{ type: "finished", result }]);
    const about = {
      id: "early",
      tenant: tenantOf(key),
      attempt: 1,
      pool: "default",
      session: "main",
      kind: "exec",
    };
    await leases.mark(key, about, { ...defaultWaitingLimits, queueKeys: unfinishedKeys(key) });
    expect(await commands.hgetall(redisKeys.job("early"))).toMatchObject({
      ...{ key: "acme", tenant: "acme", session: "main", kind: "exec", outcome: "done" },
      at: expect.stringMatching(/^\d+$/),
    });
    expect(await commands.zscore(redisKeys.unfinished, "early")).toBeNull();
    expect(await commands.pttl(redisKeys.job("early")), "it is forgotten in time").toBeGreaterThan(0);
  });
});
