import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { redisKeys } from "@berth/protocol";
import { describe, expect } from "vitest";
import { type TestStore, test } from "../support/artifacts.ts";

const program = fileURLToPath(new URL("../support/halting-store.ts", import.meta.url));

/** Runs the program until it stands in the middle of a step, and kills it there. */
async function killed(url: string, directory: string, step: string): Promise<void> {
  const child = spawn(process.execPath, ["--conditions=@berth/source", program, url, directory, step], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** As if the hour that a draft is left alone were over. */
async function anHourLater({ redis, keys }: { redis: TestStore["redis"]; keys: string[] }): Promise<void> {
  for (const key of keys.filter((name) => name.startsWith(redisKeys.artifactGarbage("")))) {
    for (const file of await redis.zrange(key, "0", "-1")) await redis.zadd(key, "XX", 1, file);
  }
}

describe("worker that dies", () => {
  test.for(["while writing", "before settling", "after settling"])(
    "a worker that dies %s leaves no artifact, only a file that the sweep removes after an hour",
    async (step, { redis, artifacts }) => {
      await killed(redis.url, artifacts.directory, step);
      expect(await artifacts.files()).toHaveLength(1);
      expect(await artifacts.store.usage("acme")).toEqual({ bytes: 0, artifacts: 0 });
      // No process can know yet that its writer is dead.
      expect(await artifacts.store.sweep()).toEqual({ expired: 0, removedFiles: 0 });
      expect(await artifacts.files()).toHaveLength(1);
      await anHourLater({ redis: artifacts.redis, keys: await artifacts.keys() });
      await artifacts.store.sweep();
      expect(await artifacts.files()).toEqual([]);
      expect(await artifacts.keys()).toEqual([]);
    },
  );

  test("a worker that dies after adding leaves an artifact like any other", async ({ redis, artifacts }) => {
    await killed(redis.url, artifacts.directory, "after adding");
    await anHourLater({ redis: artifacts.redis, keys: await artifacts.keys() });
    expect(await artifacts.store.sweep()).toEqual({ expired: 0, removedFiles: 0 });
    const [id = ""] = await artifacts.redis.zrange(redisKeys.artifactExpiry, "0", "-1");
    expect(await artifacts.store.reader.bytes(id)).toHaveLength(20 * 20_050);
  });

  test("a worker that dies before removing leaves a file that the next sweep removes", async ({
    redis,
    artifacts,
  }) => {
    await killed(redis.url, artifacts.directory, "before removing");
    expect(await artifacts.files()).toHaveLength(1);
    expect(await artifacts.store.usage("acme")).toEqual({ bytes: 0, artifacts: 0 });
    expect(await artifacts.store.sweep()).toEqual({ expired: 0, removedFiles: 1 });
    expect(await artifacts.files()).toEqual([]);
    expect(await artifacts.keys()).toEqual([]);
  });
});
