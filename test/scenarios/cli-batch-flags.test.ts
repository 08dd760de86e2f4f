import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { busybox, test as withFleet } from "../support/fleet.ts";
import { adminKey, TestGateways } from "../support/gateway.ts";

type Way = "straight to Redis" | "through a gateway";

const test = withFleet.extend<{
  here: string;
  gateways: TestGateways;
  berth: (way: Way, ...args: string[]) => Promise<{ code: number | string; stdout: string; stderr: string }>;
}>({
  gateways: async ({ fleet }, use) => {
    await fleet.worker("worker-1", busybox);
    const gateways = new TestGateways(fleet.redis.url);
    await use(gateways);
    await gateways.close();
  },
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
  berth: async ({ fleet, gateways, here }, use) => {
    let url: Promise<string> | undefined;
    await use(async (way, ...args) => {
      if (way === "straight to Redis")
        return runCli(args, { env: { REDIS_URL: fleet.redis.url }, cwd: here });
      url ??= gateways.start().then((gateway) => gateway.url);
      return runCli(args, { env: { BERTH_URL: await url, BERTH_KEY: adminKey }, cwd: here });
    });
  },
});

interface Line {
  index: number;
  line: number;
  id: string;
  tenant: string;
  session: string;
  agent?: string;
  labels?: Record<string, string>;
  exitCode?: number;
  outcome: { kind: string; reason?: string };
  timing: { wallMs: number; queuedAtMs: number; startedAtMs: number; finishedAtMs: number };
  worker?: string;
  host?: string;
}

async function writeJobs(here: string, jobs: readonly object[]): Promise<void> {
  await writeFile(join(here, "jobs.jsonl"), jobs.map((job) => `${JSON.stringify(job)}\n`).join("\n"));
}

async function linesOf(here: string, file: string): Promise<Line[]> {
  const lines: Line[] = (await readFile(join(here, file), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  return lines.sort((a, b) => a.index - b.index);
}

const exec = (command: string, more: object = {}) => ({
  tenant: "acme",
  ...more,
  request: { kind: "exec", command },
});

const ways: readonly Way[] = ["straight to Redis", "through a gateway"];

describe.each(ways)("a batch %s", (way) => {
  test("a batch has lines that say whose each job was, how it ended and when; what failed is run again alone", async ({
    fleet,
    here,
    berth,
  }) => {
    await writeJobs(here, [
      exec("echo 0 >> ran"),
      exec("echo 1 >> ran; test -f fixed", {
        session: "b",
        agent: "a-1",
        labels: { run: "mine", step: "2" },
      }),
      exec("echo 2 >> ran", { tenant: "globex" }),
    ]);
    const run = ["batch", "run", "jobs.jsonl", "--labels", "run=all,team=x", "--report", "run.html"];
    const first = await berth(way, ...run, "--out", "first.jsonl", "--json");
    expect(first.code).toBe(1);
    expect(JSON.parse(first.stdout)).toMatchObject({
      ...{ total: 3, finished: 3, succeeded: 2, failed: 1, lost: 0, failedBy: { "exited 1": 1 } },
      wallMs: { p50: expect.any(Number), p95: expect.any(Number) },
      waitMs: { p50: expect.any(Number), p95: expect.any(Number) },
      cpuSeconds: { acme: expect.any(Number), globex: expect.any(Number) },
    });
    const [zero, one, two] = await linesOf(here, "first.jsonl");
    expect(zero).toMatchObject({
      line: 1,
      tenant: "acme",
      session: "main",
      labels: { run: "all", team: "x" },
    });
    expect(one).toMatchObject({
      ...{ line: 3, tenant: "acme", session: "b", agent: "a-1", exitCode: 1, worker: "worker-1" },
      labels: { run: "mine", step: "2", team: "x" },
    });
    expect(two).toMatchObject({ line: 5, tenant: "globex", exitCode: 0, host: expect.any(String) });
    const { queuedAtMs, startedAtMs, finishedAtMs } = one?.timing ?? ({} as Line["timing"]);
    expect(queuedAtMs).toBeLessThanOrEqual(startedAtMs);
    expect(startedAtMs).toBeLessThanOrEqual(finishedAtMs);
    expect(await readFile(join(here, "run.html"), "utf8")).toContain("Outcomes by tenant");
    const acme = fleet.client().tenant("acme");
    await acme.exec("touch fixed");
    const again = ["batch", "run", "jobs.jsonl", "--retry-failed", "first.jsonl"];
    const second = await berth(way, ...again, "--out", "second.jsonl");
    expect(second.code).toBe(0);
    expect(second.stderr).toContain("1 job of 3: what failed in first.jsonl");
    expect(await linesOf(here, "second.jsonl")).toMatchObject([
      { index: 1, line: 3, session: "b", exitCode: 0 },
    ]);
    expect((await acme.exec("sort ran")).stdout).toBe("0\n1\n1\n");
  });

  test("a batch ends at its --max-failures: the rest is cancelled, and every job has a line", async ({
    here,
    berth,
  }) => {
    const jobs = Array.from({ length: 30 }, (_, index) => exec(index < 2 ? "exit 3" : "sleep 60"));
    await writeJobs(here, jobs);
    const run = ["batch", "run", "jobs.jsonl", "--out", "results.jsonl", "--max-failures", "2"];
    const { code, stderr, stdout } = await berth(way, ...run, "--in-flight", "8");
    expect(code).toBe(1);
    expect(stderr).toContain("the rest was cancelled: 2 jobs had failed (--max-failures 2)");
    expect(stdout).toContain("30 of 30 jobs ended");
    const lines = await linesOf(here, "results.jsonl");
    expect(lines.map(({ index }) => index)).toEqual(jobs.map((_, index) => index));
    expect(lines.map(({ outcome }) => outcome.kind)).toEqual([
      ...["exited", "exited"],
      ...Array.from({ length: 28 }, () => "cancelled"),
    ]);
    expect(lines.at(-1)?.outcome.reason).toContain("before it was submitted");
  });

  test("a batch ends when its --timeout is over, with an exit code of its own", async ({ here, berth }) => {
    await writeJobs(here, [exec("sleep 60")]);
    const run = ["batch", "run", "jobs.jsonl", "--out", "results.jsonl", "--timeout", "1s", "--json"];
    const { code, stdout } = await berth(way, ...run);
    expect(code).toBe(124);
    expect(JSON.parse(stdout)).toMatchObject({ stopped: expect.stringContaining("--timeout 1 s") });
    expect(await linesOf(here, "results.jsonl")).toMatchObject([
      { index: 0, outcome: { kind: "cancelled" } },
    ]);
  });
});

test("a batch whose gateway is killed goes on with the next one, and runs nothing twice", async ({
  fleet,
  gateways,
  here,
}) => {
  const count = 60;
  await writeJobs(
    here,
    Array.from({ length: count }, (_, index) =>
      exec(`echo ${index} >> ran; sleep 0.2`, { session: `s${index % 4}` }),
    ),
  );
  const first = await gateways.start();
  const port = `${first.port}`;
  const env = { BERTH_URL: first.url, BERTH_KEY: adminKey };
  const args = [
    "batch",
    "run",
    "jobs.jsonl",
    "--id",
    "killed",
    "--out",
    "results.jsonl",
    "--in-flight",
    "24",
  ];
  const run = new CliRun(args, { env, cwd: here });
  const results = () => readFile(join(here, "results.jsonl"), "utf8").catch(() => "");
  await expect.poll(results, { timeout: 30_000, interval: 20 }).toContain("\n");
  first.process.kill("SIGKILL");
  await first.ended();
  expect((await results()).trimEnd().split("\n").length).toBeLessThan(count);
  await gateways.start({ BERTH_GATEWAY_PORT: port });
  expect((await run.end()).code).toBe(0);
  expect((await linesOf(here, "results.jsonl")).map(({ index }) => index)).toEqual(
    Array.from({ length: count }, (_, index) => index),
  );
  const { stdout } = await fleet.client().tenant("acme").exec("sort -n ran", { session: "look" });
  expect(stdout.trimEnd().split("\n").map(Number)).toEqual(
    Array.from({ length: count }, (_, index) => index),
  );
});
