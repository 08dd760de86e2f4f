import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { acme, allOf, type Reading, resultOf, test } from "./reading.ts";

/** Ends a job as a worker does, but without the inbox entry that its client waits for. */
async function endWithoutInbox(reading: Reading, jobId: string): Promise<void> {
  await reading.finish(jobId, jobId);
  await reading.commands.hset(redisKeys.job(acme, jobId), "outcome", "exited");
}

const unknown = { name: "Fault", code: "job-unknown", retry: false };

describe("client whose inbox misses the end of a job", () => {
  test("a client whose inbox misses the end of a job finds it by the job's record when its blocking connection is reopened", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const result = reader.expectedResult(acme, reader.expect("a"));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await endWithoutInbox(reading, "a");
    await reading.killBlocked();
    expect(await result).toEqual(resultOf("a"));
  });

  test("a client whose inbox misses the end of a job finds it by the job's record at the next check, without a lost connection", async ({
    reading,
  }) => {
    const reader = reading.reader(undefined, { everyMs: 50 });
    const ids = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    const results = ids.map((id) => reader.expectedResult(acme, reader.expect(id)));
    const unfinished = reader.expectedResult(acme, reader.expect("unfinished"));
    for (const id of ids) await endWithoutInbox(reading, id);
    expect(await Promise.all(results)).toEqual(ids.map(resultOf));
    await reading.finish("unfinished", "published", reader.name);
    expect(await unfinished).toEqual(resultOf("published"));
  });
});

describe("client that waits for a job that Redis has forgotten", () => {
  test("a client that waits for a job that Redis has forgotten gets job-unknown from each kind of wait: inbox, stream and follower", async ({
    reading,
  }) => {
    const reader = reading.reader();
    const waiting = [
      reader.expectedResult(acme, reader.expect("a")),
      reader.result(acme, "b"),
      reader.result(acme, "c", { expected: reader.expect("c") }),
      allOf(reader.follow(acme, "a")),
    ].map((one) => expect(one).rejects.toMatchObject(unknown));
    await expect.poll(() => reading.blocked()).toHaveLength(1);
    await reading.commands.flushall();
    await reading.killBlocked();
    await Promise.all(waiting);
  });

  test("a client gets job-unknown when the job's record is left and its terminal event is not", async ({
    reading,
  }) => {
    const reader = reading.reader(undefined, { everyMs: 50 });
    await reading.commands.hset(redisKeys.job(acme, "a"), "key", acme, "outcome", "exited");
    await expect(reader.expectedResult(acme, reader.expect("a"))).rejects.toMatchObject(unknown);
  });
});
