import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runCli } from "./support/cli.ts";
import {
  brokenLinks,
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
import { patient, type Reader, test as withReader } from "./support/reader.ts";

const clientPage = programsOf(await docBlocks("docs/client.md", ["ts", "js"]));

const test = withReader.extend<{ programs: string }>({
  programs: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
    async ({}, use) => {
      // Beside the packages that they import, and where git does not look.
      const place = join(root, "examples/.berth");
      await mkdir(place, { recursive: true });
      const directory = await mkdtemp(join(place, "docs-"));
      try {
        await writePrograms(directory, clientPage);
        await use(directory);
      } finally {
        await rm(directory, { recursive: true });
      }
    },
    { scope: "file" },
  ],
});

test.for(["docs/client.md", "docs/operations.md", "docs/use-berth.md", "examples/README.md"])(
  "every link of %s leads somewhere",
  async (page) => {
    expect(await brokenLinks(page)).toEqual([]);
  },
);

describe("docs/client.md", () => {
  test("docs/client.md has blocks whose types hold", async ({ programs }) => {
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
      const { code, stdout, stderr } = await runProgram("python3", [program], {
        ...reader,
        PYTHONPATH: join(root, "packages/client-python/src"),
        PYTHONDONTWRITEBYTECODE: "1",
      });
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

  test(
    "door.ts: a door of one's own runs commands and refuses hostile requests",
    patient,
    async ({ reader }) => {
      const program = join(root, "examples/door.ts");
      const door = spawn(process.execPath, ["--conditions=@berth/source", program], {
        env: { PATH: process.env.PATH, REDIS_URL: reader.REDIS_URL },
        stdio: ["ignore", "pipe", "inherit"],
      });
      try {
        const [line] = await once(door.stdout, "data");
        const ask = async (path: string, body: string) => {
          const response = await fetch(`${String(line).trim()}${path}`, { method: "POST", body });
          return [response.status, (await response.text()).trim()];
        };
        expect(await ask("/acme", "echo hello")).toEqual([200, "hello"]);
        expect(await ask("/acme", "echo no; exit 3")).toEqual([422, "no\n[exit 3]"]);
        expect(await ask("/bob%40example.com", "echo hi")).toEqual([200, "hi"]);
        for (const name of ["", "a%0Ab", "%zz", "nobody--aaaaaaaaaaaaaaaaaaaaaaaaaa"])
          expect((await ask(`/${name}`, "id"))[0], name).toBe(400);
        expect((await ask("/acme", "x".repeat(100_000)))[0]).toBe(400);
        expect((await ask("/acme", ""))[0]).toBe(400);
      } finally {
        const ended = once(door, "exit");
        door.kill("SIGTERM");
        expect(await ended).toEqual([0, null]);
      }
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
      const env = Object.fromEntries(names.map((name) => [name, reader[name]]));
      const out = join(scratch, "results.jsonl");
      const line = ["batch", "run", join(root, "examples/batch.jsonl"), "--id", `nightly-${door.length}`];
      const run = () => runCli([...line, "--out", out, "--artifacts", join(scratch, "out")], { env });
      const first = await run();
      expect(first.stdout).toContain("5 succeeded, 1 failed");
      expect(first.code).toBe(1);
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

function node(program: string, reader: Reader): Promise<ProgramEnd> {
  return runProgram(process.execPath, ["--conditions=@berth/source", program], reader);
}
