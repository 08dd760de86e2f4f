import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test as plainTest } from "vitest";
import { runCli } from "./support/cli.ts";
import {
  docBlocks,
  fits,
  oneLine,
  programsOf,
  root,
  runProgram,
  statedOutput,
  writePrograms,
} from "./support/doc-blocks.ts";
import { TestFleet } from "./support/fleet.ts";
import { adminKey, TestGateways } from "./support/gateway.ts";
import { TestRedis } from "./support/redis.ts";

const clientPage = programsOf(await docBlocks("docs/client.md", ["ts", "js"]));
const source = "--conditions=@berth/source";

/** What a reader has: a Redis, two workers, a gateway, and a directory beside the packages. One for all of them. */
interface Reader {
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
}

const test = plainTest.extend<{ reader: Reader }>({
  reader: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      const home = await mkdtemp(join(tmpdir(), "berth-docs-"));
      const redis = new TestRedis(await mkdtemp(join(tmpdir(), "berth-redis-")));
      await redis.start();
      const fleet = new TestFleet(redis, home);
      const gateways = new TestGateways(redis.url);
      const directory = await mkdtemp(join(root, "examples/.docs-"));
      const artifacts = join(home, "artifacts");
      try {
        await Promise.all(["worker-1", "worker-2"].map((id) => fleet.worker(id)));
        const gateway = await gateways.start({ BERTH_ARTIFACTS: artifacts });
        await writePrograms(directory, clientPage);
        const env = {
          REDIS_URL: redis.url,
          BERTH_ARTIFACTS: artifacts,
          BERTH_URL: gateway.url,
          BERTH_KEY: adminKey,
        };
        await use({ env, directory });
      } finally {
        await rm(directory, { recursive: true, force: true });
        await gateways.close();
        await fleet.close();
        await redis.stop();
      }
    },
    { scope: "file" },
  ],
});

describe("docs/client.md", () => {
  test("has blocks whose types hold", async ({ reader }) => {
    const { code, stdout } = await runProgram("tsc", ["-p", reader.directory]);
    expect(stdout).toBe("");
    expect(code).toBe(0);
  });

  test.for(clientPage)("line $line, $heading: prints what its comments say", async (block, { reader }) => {
    const { code, stdout, stderr } = await runProgram(
      process.execPath,
      [source, join(reader.directory, block.file)],
      reader.env,
    );
    expect(stderr).toBe("");
    const stated = statedOutput(block.code);
    if (!fits(stated, stdout)) expect(oneLine(stdout)).toBe(oneLine(stated));
    expect(code).toBe(0);
  });
});
