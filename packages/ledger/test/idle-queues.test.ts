import { redisKeys, sandboxKey } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { forgetIdleQueues } from "../src/queues/idle-queues.ts";
import { submitJob } from "../src/queues/submit.ts";
import { jobOf } from "./support.ts";

describe("removing idle queues", () => {
  test("idle queues are removed although older queues have jobs", async ({ redis }) => {
    const commands = redis.connect();
    for (const name of ["waits-1", "waits-2", "idle"]) {
      await submitJob(commands, sandboxKey.parse(name), jobOf(name, { tenant: name }));
      await commands.zadd(redisKeys.queues, name === "idle" ? 2 : 1, name);
    }
    await commands.del("berth:{idle}:jobs:wait");
    await commands.zrem(redisKeys.pending, "idle");
    const limits = { idleMs: 3_600_000, limit: 2 };
    expect(await forgetIdleQueues(commands, limits)).toEqual([]);
    expect(await forgetIdleQueues(commands, limits)).toEqual(["idle"]);
    expect(await commands.exists("berth:{waits-1}:jobs:wait")).toBe(1);
  });
});
