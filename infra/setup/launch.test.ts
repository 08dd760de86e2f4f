import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { berthEnvironment, newContext } from "./context.mjs";
import { engineAt } from "./engine-api.mjs";
import { processUnder } from "./process-state.mjs";

let root: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "berth-launch-"));
});
afterEach(() => {
  child?.kill("SIGKILL");
  if (processUnder(programPid())) process.kill(programPid(), "SIGKILL");
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

test("the launcher passes arguments to the program and returns its exit code", async () => {
  const launched = startLaunch("process.exit(process.argv.slice(2).join() === 'a b,--c' ? 42 : 1)", [
    "a b",
    "--c",
  ]);
  expect((await once(launched, "exit"))[0]).toBe(42);
});

test("the launcher passes a signal on and waits for the program's own exit", async () => {
  const launched = startLaunch(
    "process.on('SIGTERM', () => process.exit(7)); setInterval(() => {}, 1000); process.stdout.write('up')",
  );
  await once(launched.stdout as NodeJS.ReadableStream, "data");
  launched.kill("SIGTERM");
  expect((await once(launched, "exit"))[0]).toBe(7);
});

test("the launcher fails when a signal ended its program", async () => {
  const launched = startLaunch("process.kill(process.pid, 'SIGKILL')");
  expect((await once(launched, "exit"))[0]).toBe(128 + 9);
});

/** Notes its pid, then that it lives, then why it stops. As a fleet does, it takes its time to stop. */
const STOPPING = `
  import { appendFileSync } from 'node:fs';
  const note = (text) => appendFileSync(new URL('notes', import.meta.url), text + '\\n');
  const stop = (why) => { note(why); setTimeout(() => { note('stopped'); process.exit(0); }, 1000); };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('disconnect', () => stop('disconnect'));
  note('pid ' + process.pid);
  setInterval(() => note('alive'), 200);
`;

/** npm → a shell that waits → the launching script → the program, in a session of their own and with no stdin. */
async function startByNpm(command = ["npm", "run", "-s", "go"]) {
  writeFileSync(path.join(root, "launching.mjs"), LAUNCH.replace("slice(1)", "slice(2)"));
  const line = `node launching.mjs ${new URL("./", import.meta.url).href} ${root}; exit $?`;
  writeFileSync(path.join(root, "package.json"), JSON.stringify({ scripts: { go: line } }));
  writeFileSync(path.join(root, "program.mjs"), STOPPING);
  child = spawn(command[0] ?? "", command.slice(1), { cwd: root, stdio: "ignore", detached: true });
  await expect.poll(programPid).toBeGreaterThan(0);
  const program = programPid();
  const launching = processUnder(program)?.parent ?? 0;
  const shell = processUnder(launching)?.parent ?? 0;
  const npm = processUnder(shell)?.parent ?? 0;
  return { npm, shell, launching, program };
}

function notes(): string[] {
  const file = path.join(root, "notes");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
}

function programPid(): number {
  return Number(notes()[0]?.slice("pid ".length) ?? 0);
}

const endingNotes = () => notes().filter((note) => note !== "alive" && !note.startsWith("pid"));
const aliveNotes = () => notes().filter((note) => note === "alive");

test.for([
  { who: "npm", signal: "SIGTERM", expected: "SIGTERM" },
  { who: "npm", signal: "SIGKILL", expected: "SIGTERM" },
  { who: "shell", signal: "SIGKILL", expected: "SIGTERM" },
  { who: "launching", signal: "SIGKILL", expected: "disconnect" },
] as const)("the program stops in order when $who gets a $signal", async ({ who, signal, expected }) => {
  const pids = await startByNpm();
  expect(pids.npm).toBe(child?.pid);
  process.kill(pids[who], signal);
  await expect.poll(endingNotes).toEqual([expected, "stopped"]);
  for (const pid of Object.values(pids)) await expect.poll(() => processUnder(pid)).toBeUndefined();
});

test("after a signal to npm's whole process group, the end of its shell does not count as another", async () => {
  const { npm, program } = await startByNpm();
  process.kill(-npm, "SIGTERM");
  await expect.poll(() => processUnder(program)).toBeUndefined();
  // Its own one, and the launching script's, which the kernel may make one of.
  expect(endingNotes().filter((note) => note === "SIGTERM").length).toBeOneOf([1, 2]);
});

test("a program without a stdin outlives the shell that started npm in the background", async () => {
  const { npm, program } = await startByNpm(["sh", "-c", "npm run -s go </dev/null & exit"]);
  expect(child?.pid).not.toBe(npm);
  const before = aliveNotes().length;
  // npm is looked for twice a second.
  await expect.poll(() => aliveNotes().length).toBeGreaterThan(before + 8);
  expect(endingNotes()).toEqual([]);
  process.kill(program, "SIGTERM");
  for (const pid of [npm, program]) await expect.poll(() => processUnder(pid)).toBeUndefined();
});

test("launched programs find Berth's Node and tools first in PATH, and an engine at an unusual socket", () => {
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
