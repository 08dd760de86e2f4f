import { queuePrefix, sandboxKey, workerId } from "@berth/protocol";
import { Queue } from "bullmq";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { Leases } from "../src/leases/leases.ts";
import { bullConnection } from "../src/queues/connection.ts";
import { JobSource } from "../src/queues/job-source.ts";
import { jobQueueName, unfinishedKeys } from "../src/queues/queue-layout.ts";
import { submitJob } from "../src/queues/submit.ts";
import { Wakes } from "../src/queues/wakes.ts";
import { jobOf } from "./support.ts";

const key = sandboxKey.parse("acme");

test("BullMQ sees each job of a sandbox's queue in the state that our scripts gave it", async ({ redis }) => {
  const commands = redis.connect();
  const connection = bullConnection(commands);
  const queue = new Queue(jobQueueName, { connection, prefix: queuePrefix(key), skipMetasUpdate: true });
  const holder = { worker: workerId.parse("w"), instance: "w" };
  const lease = await new Leases(commands).take(key, holder, 60_000);
  const wakes = new Wakes(commands, "w");
  const source = new JobSource(commands, key, { epoch: lease.taken ? lease.epoch : 0, instance: "w" }, wakes);

  await submitJob(commands, key, jobOf("first"));
  const first = await source.next(1_000);
  await submitJob(commands, key, jobOf("second"));
  await submitJob(commands, key, jobOf("urgent", { priority: 3 }));
  expect(await queue.getJobCounts("wait", "active", "prioritized", "completed")).toEqual({
    ...{ wait: 1, active: 1, prioritized: 1, completed: 0 },
  });
  expect((await queue.getJobs(["active"])).map(({ id }) => id)).toEqual(["first"]);
  const waiting = await queue.getJob("second");
  expect(waiting).toMatchObject({ name: "exec", data: { id: "second", tenant: "acme" }, priority: 0 });
  expect(await waiting?.getState()).toBe("waiting");
  const urgent = await queue.getJob("urgent");
  expect([await urgent?.getState(), urgent?.priority]).toEqual(["prioritized", 3]);

  await first?.complete();
  const done = await queue.getJob("first");
  expect(await done?.getState()).toBe("completed");
  expect(unfinishedKeys(key)).toEqual(
    ["wait", "active", "prioritized", "paused"].map((list) => queue.toKey(list)),
  );
  await source.close();
  wakes.stop();
  await queue.close();
});
