import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fleetId, workerId } from "@berth/protocol";
import { DockerDriver } from "@berth/sandbox";
import { test as base, expect } from "vitest";
import { CliRun, runCli } from "../support/cli.ts";

const test = base.extend<{ here: string }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the fixtures it needs from the pattern
  here: async ({}, use) => {
    const directory = await mkdtemp(join(tmpdir(), "berth-cli-"));
    await use(directory);
    await rm(directory, { recursive: true });
  },
});

function containersOf(fleet: string, root: string) {
  return new DockerDriver({
    fleet: fleetId.parse(fleet),
    worker: workerId.parse("observer"),
    workspacesRoot: root,
    engineHost: process.env.DOCKER_HOST,
  }).list();
}

test("dev brings a whole fleet up in one command, keeps what tenants made, and takes everything down", async ({
  here,
}) => {
  const dev = () =>
    new CliRun(["dev", "--json", "--port", "0", "--workers", "1", "--dir", "kept"], { cwd: here });
  const first = dev();
  await first.says("\n");
  const { gateway } = JSON.parse(first.stdout);
  const env = { BERTH_URL: gateway };
  expect((await runCli(["write", "acme", "kept"], { env, stdin: "still here" })).code).toBe(0);
  const second = await runCli(["dev", "--dir", "kept"], { cwd: here });
  expect(second.code).toBe(1);
  expect(second.stderr).toContain("a fleet is up already");
  expect(await first.signal("SIGINT")).toMatchObject({ code: 0, stderr: "" });
  expect(await containersOf("dev", join(here, "kept/workspaces"))).toEqual([]);
  const third = dev();
  await third.says("\n");
  const again = { BERTH_URL: JSON.parse(third.stdout).gateway };
  expect((await runCli(["read", "acme", "kept"], { env: again })).stdout).toBe("still here");
  expect((await third.signal("SIGTERM")).code).toBe(0);
  expect((await runCli(["ls", "acme"], { env: again })).code).toBe(69);
}, 120_000);

test("the tour shows what it promises and leaves nothing behind", async ({ here }) => {
  const { code, stdout } = await runCli(["tour", "--exit"], { cwd: here });
  expect(stdout).toContain("60 done, 0 wrong");
  expect(stdout).toContain("as the job left it");
  expect(stdout).toContain('"kind":"timed-out"');
  expect(stdout).toContain("All of it as promised.");
  expect(code).toBe(0);
  expect(await readdir(join(here, ".berth"))).toEqual([]);
}, 120_000);
