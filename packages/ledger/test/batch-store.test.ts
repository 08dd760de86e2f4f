import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { BatchStore } from "../src/batches/batch-store.ts";

describe("batch", () => {
  test("a batch whose gateway died while it was made is made by the next request", async ({ redis }) => {
    const commands = redis.connect();
    await commands.hset(redisKeys.batch("bat_1"), "createdAtMs", 1);
    const store = new BatchStore(commands);
    expect(await store.open("bat_1", "acme", undefined)).toMatchObject({ owner: "acme", state: "uploading" });
    expect(await commands.zscore(redisKeys.batchesOpen, "bat_1")).not.toBeNull();
    expect(await store.open("bat_1", "other", undefined)).toMatchObject({ owner: "acme" });
  });

  test("open batches whose records have expired leave the list of an owner without a ceiling, too", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const store = new BatchStore(commands);
    for (let index = 0; index < 30; index++) {
      await store.open(`bat_${index}`, "", undefined);
      await commands.unlink(redisKeys.batch(`bat_${index}`));
    }
    await store.open("bat_lives", "", undefined);
    expect(await commands.zrange(redisKeys.batchesOpenOf(""), "0", "-1")).toEqual(["bat_lives"]);
  });

  test("a batch that ends while it is being cancelled has ended, or is cancelled first and ends then", async ({
    redis,
  }) => {
    const [one, other] = [new BatchStore(redis.connect()), new BatchStore(redis.connect())];
    for (let round = 0; round < 20; round++) {
      const id = `bat_${round}`;
      await one.open(id, "acme", undefined);
      await one.noteUploaded(id, 1);
      await Promise.all([one.cancel(id), other.noteEnd(id, { index: 0, key: "acme", failed: false })]);
      expect((await one.get(id))?.state).toBe("finished");
    }
  });

  test("a batch that has expired is not made again by what a gateway still notes in it", async ({
    redis,
  }) => {
    const commands = redis.connect();
    const store = new BatchStore(commands);
    const webhook = { state: "given-up", tries: 3, problem: "no" } as const;
    const notes: (() => Promise<unknown>)[] = [
      () => store.noteSubmitted("bat_1", 5),
      () => store.noteUploaded("bat_1", 5),
      () => store.noteCancelledTo("bat_1", 2),
      () => store.noteWebhook("bat_1", webhook),
      () => store.noteRefused("bat_1", 0, "it is no job"),
      () => store.noteEnd("bat_1", { index: 1, key: "acme", failed: false }),
      () => store.cancel("bat_1"),
      () => store.touch("bat_1"),
    ];
    for (const note of notes) {
      await note();
      expect(await commands.keys("*")).toEqual([]);
    }
  });

  test("a batch has what is noted in it, and counts an order that was refused once", async ({ redis }) => {
    const commands = redis.connect();
    const store = new BatchStore(commands);
    await store.open("bat_1", "acme", undefined);
    await store.noteSubmitted("bat_1", 3);
    await store.noteCancelledTo("bat_1", 2);
    await store.noteWebhook("bat_1", { state: "waiting", tries: 1, problem: "no" });
    for (const problem of ["it is no job", "something else"]) await store.noteRefused("bat_1", 0, problem);
    expect(await store.get("bat_1")).toMatchObject({
      ...{ submitted: 3, cancelledTo: 2, refused: 1, finished: 1, failed: 1 },
      ...{ webhookState: "waiting", webhookTries: 1, webhookProblem: "no" },
    });
    expect(await store.refusedProblem("bat_1", 0)).toBe("it is no job");
    expect(await commands.pttl(redisKeys.batchRefused("bat_1"))).toBeGreaterThan(0);
  });
});
