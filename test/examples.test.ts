import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test as plainTest } from "vitest";
import { runCli } from "./support/cli.ts";
import {
  docBlocks,
  fits,
  oneLine,
  type ProgramEnd,
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

/** What a reader has: a Redis, two workers and a gateway. One for all of them. */
interface Reader {
  readonly env: Readonly<Record<"REDIS_URL" | "BERTH_URL" | "BERTH_KEY" | "BERTH_ARTIFACTS", string>>;
}

const test = plainTest.extend<{ programs: string; reader: Reader; scratch: string }>({
  /** Beside the packages that they import. */
  programs: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      const directory = await mkdtemp(join(root, "examples/.docs-"));
      try {
        await writePrograms(directory, clientPage);
        await use(directory);
      } finally {
        await rm(directory, { recursive: true });
      }
    },
    { scope: "file" },
  ],
  reader: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      const home = await mkdtemp(join(tmpdir(), "berth-docs-"));
      const redis = new TestRedis(await mkdtemp(join(tmpdir(), "berth-redis-")));
      const fleet = new TestFleet(redis, home);
      const gateways = new TestGateways(redis.url);
      const artifacts = join(home, "artifacts");
      try {
        await redis.start();
        await Promise.all(["worker-1", "worker-2"].map((id) => fleet.worker(id)));
        const gateway = await gateways.start({ BERTH_ARTIFACTS: artifacts });
        const env = { REDIS_URL: redis.url, BERTH_URL: gateway.url, BERTH_KEY: adminKey };
        await use({ env: { ...env, BERTH_ARTIFACTS: artifacts } });
      } finally {
        await gateways.close();
        await fleet.close();
        await redis.stop();
      }
    },
    { scope: "file" },
  ],
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  scratch: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-example-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
});

/** A fleet is started for the first of them. */
const patient = { timeout: 180_000 };

describe("docs/client.md", () => {
  test("has blocks whose types hold", async ({ programs }) => {
    const { code, stdout } = await runProgram("tsc", ["-p", programs]);
    expect(stdout).toBe("");
    expect(code).toBe(0);
  });

  test.for(clientPage)(
    "line $line, $heading: prints what its comments say",
    patient,
    async ({ file, code: text }, { programs, reader }) => {
      const { code, stdout, stderr } = await node(join(programs, file), reader);
      expect(stderr).toBe("");
      const stated = statedOutput(text);
      if (!fits(stated, stdout)) expect(oneLine(stdout)).toBe(oneLine(stated));
      expect(code).toBe(0);
    },
  );
});

describe("examples", () => {
  test("orchestrator.ts: an agent writes, fails, mends and ends", patient, async ({ reader }) => {
    const { code, stdout, stderr } = await node(join(root, "examples/orchestrator.ts"), reader);
    expect(stderr).toBe("");
    expect(stdout.split("\n")).toEqual([
      "1. write: done ",
      "2. write: done ",
      "3. exec: exited AssertionError: 4 [exited, exit code 1]",
      "4. edit: done ",
      "5. exec: exited ",
      expect.stringMatching(/^6\. read: done .*words\.count/),
      "count words: 4 lines",
      "",
    ]);
    expect(code).toBe(0);
  });

  test(
    "orchestrator.py: the same over HTTP, live output and an artifact besides",
    patient,
    async ({ reader }) => {
      const program = join(root, "examples/orchestrator.py");
      const { code, stdout, stderr } = await runProgram("python3", [program], reader.env);
      expect(stderr).toBe("");
      expect(stdout.split("\n")).toEqual([
        "1. write: done",
        "2. exec: exited 1",
        "3. write: done",
        "4. exec: exited 0",
        "primes: 2 3 5 7 11 13 17 19 23 29",
        "part 1",
        "part 2",
        "part 3",
        "log.txt text/plain 21 bytes",
        "",
      ]);
      expect(code).toBe(0);
    },
  );

  test("plain.mjs: three tenants answer, and output comes live", patient, async ({ reader }) => {
    const { code, stdout, stderr } = await node(join(root, "examples/plain.mjs"), reader);
    expect(stderr).toBe("");
    const said = ["ada", "grace", "linus"].map((name) => `exited hello from ${name}`);
    expect(stdout.split("\n")).toEqual([...said, "1", "2", "3", "exited", ""]);
    expect(code).toBe(0);
  });

  test.for([
    ["Redis", ["REDIS_URL", "BERTH_ARTIFACTS"]],
    ["a gateway", ["BERTH_URL", "BERTH_KEY"]],
  ] as const)(
    "batch.jsonl: runs through %s as its page says, once",
    patient,
    async ([door, names], { reader, scratch }) => {
      const env = Object.fromEntries(names.map((name) => [name, reader.env[name]]));
      const out = join(scratch, "results.jsonl");
      const line = ["batch", "run", join(root, "examples/batch.jsonl"), "--id", `nightly-${door.length}`];
      const run = () => runCli([...line, "--out", out, "--artifacts", join(scratch, "out")], { env });
      const first = await run();
      expect(first).toMatchObject({
        code: 1,
        stdout: expect.stringContaining("6 of 6 jobs ended, 1 of them badly"),
      });
      const written = await readFile(out, "utf8");
      const results = written
        .trim()
        .split("\n")
        .map((text) => JSON.parse(text));
      const kinds = results.toSorted((a, b) => a.index - b.index).map(({ outcome }) => outcome.kind);
      expect(kinds).toEqual(["done", "exited", "exited", "exited", "timed-out", "done"]);
      expect(await readFile(join(scratch, "out/1/artifacts/report.md"), "utf8")).toBe("total: 8\n");
      expect(await readFile(join(scratch, "out/2/answer.txt"), "utf8")).toBe("42\n");
      expect((await run()).code).toBe(1);
      expect(await readFile(out, "utf8"), "a second run adds nothing").toBe(written);
    },
  );
});

function node(program: string, { env }: Reader): Promise<ProgramEnd> {
  return runProgram(process.execPath, ["--conditions=@berth/source", program], env);
}
