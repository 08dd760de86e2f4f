import { join } from "node:path";
import {
  ArtifactStore,
  DirectoryPlace,
  Leases,
  Offers,
  submitJob,
  unfinishedKeys,
  type VanishedJob,
} from "@berth/ledger";
import { job, redisKeys, sandboxKey, workerId } from "@berth/protocol";
import { expect } from "vitest";
import { test } from "../../../test/support/redis.ts";
import { systemClock } from "../src/clock.ts";
import { offerLapsed, sweep } from "../src/sweep.ts";

test("a worker's sweep ends a job that no queue has, and leaves one that waits", async ({ redis }) => {
  const commands = redis.connect();
  const key = sandboxKey.parse("acme");
  const request = { kind: "exec", command: "true" };
  for (const id of ["phantom", "waits"]) {
    await submitJob(commands, key, job.parse({ version: 1, id, tenant: "acme", request }));
    // Added long ago.
    await commands.zadd(redisKeys.unfinished, 1, id);
  }
  await commands.lrem(unfinishedKeys(key)[0] ?? "", 1, "phantom");
  const vanished: VanishedJob[] = [];
  const stop = new AbortController();
  const offers = new Offers(commands);
  const place = new DirectoryPlace(join(redis.directory, "artifacts"));
  const sweeping = sweep(
    {
      redis: commands,
      leases: new Leases(commands),
      offers,
      artifacts: new ArtifactStore(commands, place, { quotaBytes: 1, keptMs: 1 }),
      clock: systemClock,
      places: [],
      isResting: () => false,
      sweepMs: 5,
      pruneMs: 0,
      enqueue: async () => {},
      onPruned: () => {},
      forgetMs: 3_600_000,
      onVanished: (found) => vanished.push(found),
    },
    stop.signal,
  );
  await expect.poll(() => vanished).toEqual([{ key, jobId: "phantom" }]);
  stop.abort();
  await sweeping;
  await offers.close();
  expect(await commands.zrange(redisKeys.unfinished, "0", "-1")).toEqual(["waits"]);
});

test("a sandbox whose worker died is offered when its lease has expired, without a sweep", async ({
  redis,
}) => {
  const commands = redis.connect();
  const key = sandboxKey.parse("acme");
  const leases = new Leases(commands);
  const offers = new Offers(commands);
  const request = { kind: "exec", command: "true" };
  await submitJob(commands, key, job.parse({ version: 1, id: "a", tenant: "acme", request }));
  await leases.take(key, { worker: workerId.parse("dead"), instance: "dead" }, 50);
  const stop = new AbortController();
  const looking = offerLapsed({ leases, offers, clock: systemClock }, stop.signal);
  const place = await leases.place(key);
  await expect.poll(() => offers.waiting([place])).toBe(1);
  stop.abort();
  await looking;
  await offers.close();
});
