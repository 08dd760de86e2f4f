import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { berthEnvironment, newContext } from "./context.mjs";
import { engineAt } from "./engine-api.mjs";

let root: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "berth-launch-"));
});
afterEach(() => {
  child?.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

const LAUNCH = `
  const [setupFolder, root, ...argv] = process.argv.slice(1);
  const { launch } = await import(setupFolder + 'launch.mjs');
  const { newContext } = await import(setupFolder + 'context.mjs');
  process.exitCode = await launch({ ...newContext(root), node: { file: process.execPath, version: '' } }, 'program.mjs', argv);
`;

function startLaunch(program: string, argv: string[] = []) {
  writeFileSync(path.join(root, "program.mjs"), program);
  const setupFolder = new URL("./", import.meta.url).href;
  child = spawn(process.execPath, ["--input-type=module", "-e", LAUNCH, setupFolder, root, ...argv], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return child;
}

test("the program gets the arguments and its exit code is passed on", async () => {
  const launched = startLaunch("process.exit(process.argv.slice(2).join() === 'a b,--c' ? 42 : 1)", [
    "a b",
    "--c",
  ]);
  expect((await once(launched, "exit"))[0]).toBe(42);
});

test("a signal reaches the program, which decides what to make of it", async () => {
  const launched = startLaunch(
    "process.on('SIGTERM', () => process.exit(7)); setInterval(() => {}, 1000); process.stdout.write('up')",
  );
  await once(launched.stdout as NodeJS.ReadableStream, "data");
  launched.kill("SIGTERM");
  expect((await once(launched, "exit"))[0]).toBe(7);
});

test("a program that a signal ended counts as failed", async () => {
  const launched = startLaunch("process.kill(process.pid, 'SIGKILL')");
  expect((await once(launched, "exit"))[0]).toBe(128 + 9);
});

test("programs find our Node and tools first, and the engine when it is not at the usual place", () => {
  const context = newContext(root, { PATH: "/usr/bin", HOME: "/root" });
  context.node = { file: "/opt/node/bin/node", version: "24.9.0" };
  context.engine = engineAt("unix:///var/run/docker.sock");
  const environment = berthEnvironment(context);
  expect(environment.PATH?.split(":")[0]).toBe("/opt/node/bin");
  expect(environment.PATH?.split(":").at(-1)).toBe("/usr/bin");
  expect(environment).toMatchObject({
    HOME: "/root",
    BERTH_IMAGE: "berth-sandbox:bookworm",
    DO_NOT_TRACK: "1",
  });
  expect(environment.DOCKER_HOST).toBeUndefined();

  context.engine = engineAt("unix:///run/user/1000/docker.sock");
  expect(berthEnvironment(context).DOCKER_HOST).toBe("unix:///run/user/1000/docker.sock");
});
