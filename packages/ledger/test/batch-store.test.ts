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
});
