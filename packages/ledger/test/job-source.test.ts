import { queuePrefix, sandboxKey } from "@berth/protocol";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { JobQueues, jobQueueName } from "../src/queues/job-queues.ts";
import { JobSource } from "../src/queues/job-source.ts";
import { jobOf } from "./support.ts";

test("a worker that takes a sandbox's jobs leaves the limit of its BullMQ event stream as the producer set it", async ({
  redis,
}) => {
  const client = redis.connect();
  const key = sandboxKey.parse("acme");
  const queues = new JobQueues(client);
  await queues.add(key, jobOf("job-a"), async () => {});
  const limit = () => client.hget(`${queuePrefix(key)}:${jobQueueName}:meta`, "opts.maxLenEvents");
  await expect.poll(limit).toBe("50");
  const source = new JobSource(redis.connect("blocking"), key, { instance: "a", epoch: 1 });
  expect((await source.next(1_000))?.id).toBe("job-a");
  // Whatever its constructor writes is sent before this.
  expect(await source.active()).toHaveLength(1);
  expect(await limit()).toBe("50");
  await source.close();
  await queues.close();
});
