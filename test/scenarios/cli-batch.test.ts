import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { busybox, type TestFleet, test as withFleet } from "../support/fleet.ts";

const test = withFleet.extend<{ env: Record<string, string>; here: string }>({
  env: async ({ fleet }, use) => {
    await fleet.worker("worker-1", busybox);
    await use({ REDIS_URL: fleet.redis.url, BERTH_ARTIFACTS: join(fleet.workspaces, "../artifacts") });
  },
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
});

function order(index: number, command: string, more: object = {}): string {
  const request = { kind: "exec", command, ...more };
  return JSON.stringify({ tenant: "acme", session: `s${index % 4}`, request });
}

async function writeJobs(here: string, lines: readonly string[]): Promise<void> {
  await writeFile(join(here, "jobs.jsonl"), lines.map((line) => `${line}\n`).join(""));
}

interface Line {
  index: number;
  id: string;
  outcome: { kind: string; code?: number };
  value: { stdout?: string };
}

async function results(here: string): Promise<Line[]> {
  const text = await readFile(join(here, "results.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function linesRun(fleet: TestFleet): Promise<string[]> {
  const value = await fleet.client().tenant("acme").read("ran", { session: "look" });
  return (value.content ?? "").trimEnd().split("\n");
}

test("berth batch run writes a line for each job, prints a summary, and exits with 1 if a job failed", async ({
  env,
  here,
}) => {
  await writeJobs(here, [order(0, "echo zero"), "", order(1, "exit 3"), order(2, "echo two")]);
  const args = ["batch", "run", "jobs.jsonl", "--id", "first", "--out", "results.jsonl"];
  const ran = await runCli(args, { env, cwd: here });
  expect(ran.code).toBe(1);
  expect(ran.stdout).toMatch(/^3 of 3 jobs ended in .*: 2 succeeded, 1 failed$/m);
  expect(ran.stderr).toContain("berth logs first-1");
  const lines = (await results(here)).sort((a, b) => a.index - b.index);
  expect(lines.map(({ index, id, outcome }) => [index, id, outcome.code])).toEqual([
    [0, "first-0", 0],
    [1, "first-1", 3],
    [2, "first-2", 0],
  ]);
  expect(lines[2]?.value.stdout).toBe("two\n");
  await writeJobs(here, [order(0, "true")]);
  const good = await runCli(["batch", "run", "jobs.jsonl", "--json"], { env, cwd: here });
  expect(good.code).toBe(0);
  expect(JSON.parse(good.stdout)).toMatchObject({
    total: 1,
    finished: 1,
    failed: 0,
    outcomes: { exited: 1 },
  });
});

test("after Ctrl-C, berth batch run with the same id runs what is missing, and nothing twice", async ({
  fleet,
  env,
  here,
}) => {
  const count = 60;
  const jobs = Array.from({ length: count }, (_, index) =>
    order(index, `echo ${index} >> ran; sleep 0.1; echo ${index}`),
  );
  await writeJobs(here, jobs);
  const args = [
    "batch",
    "run",
    "jobs.jsonl",
    "--id",
    "cut-off",
    "--out",
    "results.jsonl",
    "--in-flight",
    "8",
  ];
  const run = new CliRun(args, { env, cwd: here });
  await expect
    .poll(() => readFile(join(here, "results.jsonl"), "utf8").catch(() => ""), {
      timeout: 30_000,
      interval: 20,
    })
    .toContain("\n");
  const cut = await run.signal("SIGINT");
  expect(cut.code).toBe(130);
  expect(cut.stderr).toContain("berth batch run jobs.jsonl --id cut-off --out results.jsonl");
  const before = await results(here);
  expect(before.length).toBeLessThan(count);
  // As a power cut would leave it.
  await appendFile(join(here, "results.jsonl"), '{"index":59,"id":"cut-off-59","outc');
  const rest = await runCli(args, { env, cwd: here });
  expect(rest.code).toBe(0);
  expect(rest.stderr).toContain(`${before.length} done before`);
  const after = await results(here);
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.map(({ index }) => index).sort((a, b) => a - b)).toEqual(jobs.map((_, index) => index));
  for (const { index, value } of after) expect(value.stdout).toBe(`${index}\n`);
  expect((await linesRun(fleet)).map(Number).sort((a, b) => a - b)).toEqual(jobs.map((_, index) => index));
});

test("berth batch status and berth batch cancel work from another terminal", async ({ env, here }) => {
  await writeJobs(here, [order(0, "true"), order(1, "sleep 60"), order(1, "sleep 60")]);
  const run = new CliRun(["batch", "run", "jobs.jsonl", "--id", "slow", "--out", "results.jsonl"], {
    env,
    cwd: here,
  });
  const status = async () =>
    JSON.parse((await runCli(["batch", "status", "slow", "--json"], { env })).stdout || "{}");
  await expect
    .poll(status, { timeout: 30_000 })
    .toMatchObject({ submitted: 3, finished: 1, failed: 0, running: 1, waiting: 1 });
  const cancelled = await runCli(["batch", "cancel", "slow"], { env });
  expect(cancelled.stdout).toBe("2 of 3 jobs were asked to end\n");
  expect((await run.end()).code).toBe(1);
  const kinds = (await results(here)).map(({ outcome }) => outcome.kind).sort();
  expect(kinds).toEqual(["cancelled", "cancelled", "exited"]);
  expect((await runCli(["batch", "status", "unknown"], { env })).code).toBe(1);
});

test("berth batch run refuses a file with invalid lines, names each, and runs none of it", async ({
  fleet,
  env,
  here,
}) => {
  await writeJobs(here, [
    order(0, "echo x >> ran"),
    "{not json",
    JSON.stringify({ tenant: "ACME\n", request: { kind: "nope" } }),
  ]);
  const { code, stderr } = await runCli(["batch", "run", "jobs.jsonl", "--id", "wrong"], { env, cwd: here });
  expect(code).toBe(64);
  expect(stderr).toContain("2 of 3 lines are not jobs; nothing was submitted");
  expect(stderr).toMatch(/line 2: it is not JSON/);
  expect(stderr).toMatch(/line 3: tenant: a tenant's name has a character that cannot be shown: U\+000A/);
  expect(await fleet.client().job("wrong-0")).toBeUndefined();
});

test("berth batch run --out does not append to results of another batch", async ({ env, here }) => {
  await writeJobs(here, [order(0, "true")]);
  await runCli(["batch", "run", "jobs.jsonl", "--id", "one", "--out", "results.jsonl"], { env, cwd: here });
  const other = await runCli(["batch", "run", "jobs.jsonl", "--id", "two", "--out", "results.jsonl"], {
    env,
    cwd: here,
  });
  expect(other.code).toBe(1);
  expect(other.stderr).toContain("has results of another batch");
  expect((await results(here)).map(({ id }) => id)).toEqual(["one-0"]);
});

test("berth batch run --artifacts saves the files of each job in a directory of its own", async ({
  env,
  here,
}) => {
  const jobs = [0, 1].map((index) =>
    order(index, `echo ${index} > out-${index}.txt`, { artifacts: [`out-${index}.txt`] }),
  );
  await writeJobs(here, jobs);
  const { code } = await runCli(["batch", "run", "jobs.jsonl", "--artifacts", "kept"], { env, cwd: here });
  expect(code).toBe(0);
  expect(await readFile(join(here, "kept/0/out-0.txt"), "utf8")).toBe("0\n");
  expect(await readFile(join(here, "kept/1/out-1.txt"), "utf8")).toBe("1\n");
});
