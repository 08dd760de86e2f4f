import { link, mkdtemp, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, describe, expect } from "vitest";
import { batchLines, checkBatchFile } from "../../apps/cli/src/batch/batch-file.ts";
import { BatchRun } from "../../apps/cli/src/batch/batch-run.ts";
import { ResultFile } from "../../apps/cli/src/batch/result-file.ts";
import type { ResultLine } from "../../apps/cli/src/batch/result-line.ts";
import { everyLine, failedLines } from "../../apps/cli/src/batch/selection.ts";
import { Complaint } from "../../apps/cli/src/complaint.ts";
import { runCli } from "../support/cli.ts";

const test = base.extend<{ here: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-batch-files-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
});

function resultOf(index: number, { code = 0, batch = "mine", stdout = "" } = {}): string {
  const line: ResultLine = {
    ...{ index, line: index + 1, id: `${batch}-${index}`, tenant: "acme", session: "main" },
    outcome: { kind: "exited", code },
    timing: { wallMs: 1, cpuMs: 1 },
    value: { stdout },
  };
  return JSON.stringify(line);
}

const job = JSON.stringify({ tenant: "acme", request: { kind: "exec", command: "true" } });

async function opened(path: string): Promise<number[]> {
  const found: number[] = [];
  const file = await ResultFile.open(path, "mine", ({ index }) => found.push(index));
  await file.close();
  return found;
}

const foreign: Readonly<Record<string, string | Buffer>> = {
  "a file of jobs": `${job}\n${job}\n`,
  "a file of one job, without a newline": job,
  notes: "to do: buy milk\n",
  "one word": "word",
  "a JSON document": '{\n  "index": 1\n}\n',
  "empty lines": "\n\n",
  "other JSON lines": '{"index":0}\n{"index":1}\n',
  "an index that is none": `${resultOf(0).replace('"index":0', '"index":-1')}\n`,
  "results behind a note": `# mine\n${resultOf(0)}\n`,
  "results with a line in between": `${resultOf(0)}\n${resultOf(1).slice(0, 40)}\n${resultOf(2)}\n`,
  "results with a note at the end": `${resultOf(0)}\nthe rest on Monday`,
  "results with zeros at the end": Buffer.concat([Buffer.from(`${resultOf(0)}\n`), Buffer.alloc(4_096)]),
  "bytes that are no text": Buffer.from([0xff, 0xfe, 0x0a, 0x00, 0x80]),
};

describe.for(Object.entries(foreign))("given %s", ([, content]) => {
  test("batch run --out refuses a file that is not results, names a line of it, and changes no byte", async ({
    here,
  }) => {
    const path = join(here, "given");
    await writeFile(path, content);
    const refused = await opened(path).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Complaint);
    expect(String(refused)).toMatch(/is not a file of results: line \d+ is "/);
    expect(await readFile(path)).toEqual(Buffer.from(content));
  });

  test("batch run --retry-failed refuses a file that is not results", async ({ here }) => {
    const path = join(here, "given");
    await writeFile(path, content);
    const refused = await failedLines(path, { file: "jobs", total: 9 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Complaint);
    expect(String(refused)).toMatch(/is not a file of results: line \d+ is "/);
  });
});

test("a results file that was cut off at any byte loses only its incomplete last line", async ({ here }) => {
  const path = join(here, "cut");
  const first = `${resultOf(0, { stdout: "a\u2028b\u2029c" })}\n`;
  const second = `${resultOf(1, { code: 3, stdout: "ü" })}\n`;
  const whole = Buffer.from(first + second);
  for (let bytes = 0; bytes <= whole.length; bytes++) {
    await writeFile(path, whole.subarray(0, bytes));
    const known = [0, 1].slice(
      0,
      [first, first + second].filter((text) => bytes >= Buffer.byteLength(text) - 1).length,
    );
    const failed = await failedLines(path, { file: "jobs", total: 2 });
    expect(failed.total, `${bytes} bytes`).toBe(known.length === 2 ? 1 : 0);
    expect(await opened(path), `${bytes} bytes`).toEqual(known);
    expect(await readFile(path, "utf8")).toBe([first, second].slice(0, known.length).join(""));
  }
});

test("batch run leaves a results file of another batch unchanged, also one without a last newline", async ({
  here,
}) => {
  const path = join(here, "theirs");
  const content = resultOf(0, { batch: "theirs" });
  await writeFile(path, content);
  await expect(opened(path)).rejects.toThrow(/has results of another batch/);
  expect(await readFile(path, "utf8")).toBe(content);
});

test("a results file that an editor saved with CRLF keeps all its results", async ({ here }) => {
  const path = join(here, "crlf");
  const content = [0, 1, 2].map((index) => `${resultOf(index)}\r\n`).join("");
  await writeFile(path, content);
  expect(await opened(path)).toEqual([0, 1, 2]);
  expect(await readFile(path, "utf8")).toBe(content);
});

test("a batch file without a newline is refused before it fills the memory", async ({ here }) => {
  const path = join(here, "endless");
  await writeFile(path, "");
  await truncate(path, 4 * 1024 ** 4);
  const reads = [
    () => opened(path),
    () => failedLines(path, { file: "jobs", total: 1 }),
    () => checkBatchFile(path, {}),
  ];
  for (const read of reads) await expect(read()).rejects.toThrow(/line 1 is longer than 256 MiB/);
});

test("a batch line with a Unicode line separator in its command is read as one line", async ({ here }) => {
  const path = join(here, "jobs.jsonl");
  const command = "printf 'a\u2028b\u2029c'";
  await writeFile(path, `${JSON.stringify({ tenant: "acme", request: { kind: "exec", command } })}\n`);
  expect(await checkBatchFile(path, {})).toBe(1);
  for await (const { order } of batchLines(path, {})) expect(order.request).toMatchObject({ command });
});

test("a result that a file has twice counts once, and one of no job of the batch does not count", () => {
  const run = new BatchRun({ file: "jobs", labels: {}, selection: everyLine(2) });
  const counted = [0, 0, 7, 1, 1].map((index) => run.noteEarlier(JSON.parse(resultOf(index))));
  expect(counted).toEqual([true, false, false, true, false]);
});

describe("batch whose output would go into a file that it reads", () => {
  const lead = {
    "its own path": async (path: string) => path,
    "a symbolic link": async (path: string, link: string) => symlink(path, link).then(() => link),
    "a hard link": async (path: string, name: string) => link(path, name).then(() => name),
  };
  test.for(Object.entries(lead))(
    "batch run refuses to write to a file that it reads, given %s",
    async ([, to], { here }) => {
      const jobs = join(here, "jobs.jsonl");
      const results = join(here, "results.jsonl");
      const content = { [jobs]: `${job}\n`, [results]: `${resultOf(0, { code: 1 })}\n` };
      for (const [path, text] of Object.entries(content)) await writeFile(path, text);
      const jobsAgain = await to(jobs, join(here, "jobs-link"));
      const resultsAgain = await to(results, join(here, "results-link"));
      const retry = ["--retry-failed", results];
      for (const flags of [
        ["--out", jobsAgain],
        ["--report", jobsAgain],
        [...retry, "--out", resultsAgain],
        [...retry, "--report", resultsAgain],
        ["--out", results, "--report", resultsAgain],
      ]) {
        const { code, stderr } = await runCli(["batch", "run", jobs, ...flags]);
        expect(stderr).toMatch(/--(out|report): this is the file of .*; choose another file/);
        expect(code).toBe(64);
      }
      for (const [path, text] of Object.entries(content)) expect(await readFile(path, "utf8")).toBe(text);
    },
  );
});
