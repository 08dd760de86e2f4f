import { redisKeys, sandboxKey, workerId } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test as withRedis } from "../../../test/support/redis.ts";
import { Leases } from "../src/leases/leases.ts";
import { unfinishedKeys } from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { jobOf } from "./support.ts";

const test = withRedis.extend({ topology: "cluster" });
const acme = sandboxKey.parse("acme");
const holder = { worker: workerId.parse("worker-1"), instance: "one" };

describe("sandbox whose indexes on another primary are behind", () => {
  test("a sandbox with a job has work before the index has it", async ({ redis }) => {
    const commands = redis.connect();
    const leases = new Leases(commands);
    expect(await leases.isPending(acme)).toBe(false);
    await submitJob(commands, acme, jobOf("job-a"));
    await commands.zrem(redisKeys.pending, acme);
    expect(await leases.isPending(acme)).toBe(true);
    expect(await leases.isUnheld(acme)).toBe(true);
  });

  test("a sandbox that was given up has no holder although the index gets its lease afterwards", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const leases = new Leases(commands);
    await submitJob(commands, acme, jobOf("job-a"));
    const taken = await leases.take(acme, holder, 60_000);
    if (!taken.taken) throw new Error(taken.why);
    expect(await leases.isUnheld(acme)).toBe(false);
    const holding = { epoch: taken.epoch, instance: holder.instance };
    await leases.release(acme, holding, { onlyIfEmpty: false, queueKeys: unfinishedKeys(acme) });
    await commands.zadd(redisKeys.leases, "GT", taken.deadlineMs, acme);
    expect(await leases.isUnheld(acme)).toBe(true);
  });
});
