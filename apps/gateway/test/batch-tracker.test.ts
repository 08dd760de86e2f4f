import { Berth } from "@berth/client";
import { BatchStore } from "@berth/ledger";
import { redisKeys } from "@berth/protocol";
import { pino } from "pino";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { BatchTracker } from "../src/batches/tracker.ts";

const id = "bat_one";

/** Looks at an open batch at every chance, and counts that. */
class EagerStore extends BatchStore {
  looks = 0;

  override async claimOpen({ limit }: { readonly limit: number }): Promise<string[]> {
    const due = await super.claimOpen({ holdMs: 0, limit });
    this.looks += due.length;
    return due;
  }
}

test("a job of a batch is not taken for expired while the indexes may not have it yet", async ({ redis }) => {
  const commands = redis.connect();
  const batches = new EagerStore(commands);
  const berth = new Berth({ redis: redis.url });
  const tracker = new BatchTracker({
    ...{ redis: commands, berth, batches },
    log: pino({ level: "silent" }),
    consumer: "gateway-1",
    onResult: () => {},
  });
  await batches.open(id, "acme", undefined);
  await batches.noteUploaded(id, 1);
  tracker.start();
  try {
    await expect.poll(() => batches.looks).toBeGreaterThan(1);
    expect(await batches.get(id)).toMatchObject({ state: "running", refused: 0 });
    await commands.hset(redisKeys.batch(id), "uploadAtMs", Date.now() - 120_000);
    await expect.poll(() => batches.get(id)).toMatchObject({ state: "finished", refused: 1 });
  } finally {
    await tracker.stop();
    await berth.close();
  }
});
