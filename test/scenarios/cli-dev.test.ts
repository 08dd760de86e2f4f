import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Docker from "dockerode";
import { test as base, expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";
import { oddSleep, processesAbout, processesWith } from "../support/processes.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));

/** A directory of the test's own. Every process of a fleet in it has its path in its command line or environment. */
class Here {
  readonly directory: string;
  readonly #fleets: ChildProcess[] = [];

  constructor(directory: string) {
    this.directory = directory;
  }

  /** `berth dev`, once it is up, with the environment of a client of it. */
  async dev(directory: string): Promise<{ run: CliRun; env: { BERTH_URL: string } }> {
    const args = ["dev", "--json", "--port", "0", "--workers", "1", "--dir", directory];
    const run = new CliRun(args, { cwd: this.directory });
    this.#fleets.push(run.process);
    await expect.poll(() => run.stdout, { timeout: 60_000 }).toContain("\n");
    return { run, env: { BERTH_URL: JSON.parse(run.stdout).gateway } };
  }

  /** The same through npm, in the background, without a terminal: without a stdin, in a session of its own. */
  async devByNpm(directory: string): Promise<{ npm: ChildProcess; env: { BERTH_URL: string } }> {
    const dev = ["dev", "--json", "--port", "0", "--workers", "1", "--dir", join(this.directory, directory)];
    const npm = spawn("npm", ["run", "-s", "berth", "--", ...dev], {
      cwd: repository,
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    this.#fleets.push(npm);
    const [line] = await once(npm.stdout as NodeJS.ReadableStream, "data");
    return { npm, env: { BERTH_URL: JSON.parse(String(line)).gateway } };
  }

  /** Those of the warm pool, too. */
  async containers(directory = ""): Promise<string[]> {
    const { DOCKER_HOST: host } = process.env;
    const docker = new Docker(
      host?.startsWith("unix://") ? { socketPath: host.slice("unix://".length) } : {},
    );
    const all = await docker.listContainers({ all: true });
    return all
      .filter(({ Mounts }) => Mounts.some(({ Source }) => Source.startsWith(join(this.directory, directory))))
      .map(({ Id, Names }) => Names[0] ?? Id);
  }

  async isEmptied(): Promise<void> {
    await expect.poll(() => processesAbout(this.directory), { timeout: 60_000 }).toEqual([]);
    expect(await this.containers()).toEqual([]);
  }

  /** A test that failed leaves no fleet to those after it. */
  async close(): Promise<void> {
    for (const fleet of this.#fleets) fleet.kill("SIGTERM");
    try {
      await this.isEmptied();
    } finally {
      for (const pid of await processesAbout(this.directory)) process.kill(pid, "SIGKILL");
      await rm(this.directory, { recursive: true, force: true });
    }
  }
}

const test = base.extend<{ here: Here }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const here = new Here(await mkdtemp(join(tmpdir(), "berth-cli-")));
    await use(here).finally(() => here.close());
  },
});

test("dev brings a whole fleet up in one command, keeps what tenants made, and takes everything down", async ({
  here,
}) => {
  const first = await here.dev("kept");
  expect((await runCli(["write", "acme", "kept"], { env: first.env, stdin: "still here" })).code).toBe(0);
  const second = await runCli(["dev", "--dir", "kept"], { cwd: here.directory });
  expect(second.code).toBe(1);
  expect(second.stderr).toContain("a fleet is up already");
  const taken = new URL(first.env.BERTH_URL).port;
  const third = await runCli(["dev", "--dir", "other", "--port", taken], { cwd: here.directory });
  expect(third).toMatchObject({ code: 1, stderr: expect.stringContaining("address already in use") });
  expect(await first.run.signal("SIGINT")).toMatchObject({ code: 0, stderr: "" });
  expect(await processesAbout(here.directory)).toEqual([]);
  expect(await here.containers()).toEqual([]);
  const again = await here.dev("kept");
  expect((await runCli(["read", "acme", "kept"], again)).stdout).toBe("still here");
  expect((await again.run.signal("SIGTERM")).code).toBe(0);
  expect((await runCli(["ls", "acme"], again)).code).toBe(69);
}, 120_000);

test("a dev fleet whose process is killed finishes the running job, then nothing of it remains", async ({
  here,
}) => {
  const { run, env } = await here.dev("kept");
  const sleep = oddSleep(600);
  // Only the sleep itself has all of it in its command line, not the shell.
  const command = `echo begun; nap=${sleep.replace("sleep ", "")}; sleep $nap; echo finished`;
  expect((await runCli(["exec", "acme", "--id", "slow", "-d", "--", command], { env })).code).toBe(0);
  await expect.poll(() => processesWith(sleep)).toHaveLength(1);
  await run.signal("SIGKILL");
  const workerLog = () => readFile(join(here.directory, "kept", "worker-1.log"), "utf8");
  await expect.poll(workerLog).toContain("worker.draining");
  for (const pid of await processesWith(sleep)) process.kill(pid, "SIGTERM");
  await here.isEmptied();
  const again = await here.dev("kept");
  expect((await runCli(["logs", "-f", "slow"], again)).stdout).toBe("begun\nfinished\n");
});

test("a second Ctrl-C ends dev at once, and its fleet without waiting for the running job", async ({
  here,
}) => {
  const { run, env } = await here.dev("kept");
  const long = ["exec", "acme", "--id", "long", "-d", "--", "echo begun; sleep 600"];
  expect((await runCli(long, { env })).code).toBe(0);
  await expect.poll(async () => (await runCli(["logs", "long"], { env })).stdout).toBe("begun\n");
  // Those within half a second of the first count as the first.
  const impatient = () => !run.process.kill("SIGINT");
  await expect.poll(impatient, { interval: 100 }).toBe(true);
  expect((await run.end()).code).toBe(130);
  await here.isEmptied();
});

test("two dev fleets use the same tenant on one engine, and each goes with its npm", async ({ here }) => {
  const [one, two] = await Promise.all([here.devByNpm("one"), here.devByNpm("two")]);
  for (const { env } of [one, two])
    expect((await runCli(["exec", "acme", "--", "true"], { env })).code).toBe(0);
  for (const name of ["one", "two"]) expect(await here.containers(name)).not.toEqual([]);
  one.npm.kill("SIGKILL");
  await expect.poll(() => processesAbout(join(here.directory, "one"))).toEqual([]);
  expect(await here.containers("one")).toEqual([]);
  expect(await here.containers("two")).not.toEqual([]);
  expect((await runCli(["exec", "acme", "--", "true"], two)).code).toBe(0);
  two.npm.kill("SIGTERM");
  await here.isEmptied();
});

test("the tour shows what it promises and leaves nothing behind", async ({ here }) => {
  const { code, stdout } = await runCli(["tour", "--exit"], { cwd: here.directory });
  expect(stdout).toContain("60 done, 0 wrong");
  expect(stdout).toContain("as the job left it");
  expect(stdout).toContain('"kind":"timed-out"');
  expect(stdout).toContain("All of it as promised.");
  expect(code).toBe(0);
  expect(await readdir(join(here.directory, ".berth"))).toEqual([]);
}, 120_000);

test("a tour that is killed leaves neither processes nor containers nor its directory", async ({ here }) => {
  const tour = new CliRun(["tour"], { cwd: here.directory });
  await tour.says("up in");
  await expect.poll(() => here.containers()).not.toEqual([]);
  await tour.signal("SIGKILL");
  await here.isEmptied();
  expect(await readdir(join(here.directory, ".berth"))).toEqual([]);
});
