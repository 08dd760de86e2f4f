import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { engineAt, pingEngine } from "./engine-api.mjs";
import { type EnginePlace, removeRemains, startEngine } from "./engine-start.mjs";
import { processUnder } from "./process-state.mjs";
import { findProgram } from "./search-path.mjs";

let home: string;
let place: EnginePlace;

beforeEach(() => {
  // Short, since a unix socket's path may have only 107 bytes and containerd adds its own to it.
  home = mkdtempSync(path.join(os.tmpdir(), "be-"));
  place = {
    address: `unix://${home}/docker.sock`,
    pidFile: path.join(home, "docker.pid"),
    logFile: path.join(home, "dockerd.log"),
    execRoot: path.join(home, "exec"),
    // An engine apart from the machine's own: its own data, and no networks, whose rules all engines share.
    argv: [
      ...[
        "--host",
        `unix://${home}/docker.sock`,
        "--data-root",
        `${home}/data`,
        "--exec-root",
        `${home}/exec`,
      ],
      ...["--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"],
      // Where the system runs a containerd, both engines use that one: apart only by namespace.
      ...["--containerd-namespace=berth-test", "--containerd-plugins-namespace=berth-test-plugins"],
    ],
  };
  mkdirSync(path.join(place.execRoot, "containerd"), { recursive: true });
});

afterEach(async () => {
  if (existsSync(place.pidFile)) await end(Number(readFileSync(place.pidFile, "utf8")), "SIGTERM");
  const containerd = path.join(place.execRoot, "containerd/containerd.pid");
  if (existsSync(containerd)) await end(Number(readFileSync(containerd, "utf8")), "SIGTERM");
  // Each dockerd mounts its data folder onto itself; one that was killed leaves it so.
  // containerd may hold it for a moment longer than its pid file lasts.
  const data = path.join(home, "data");
  while (readFileSync("/proc/self/mounts", "utf8").includes(` ${data} `)) {
    if (spawnSync("umount", [data]).status !== 0) await sleep(20);
  }
  rmSync(home, { recursive: true, force: true });
});

async function end(pid: number, signal: NodeJS.Signals) {
  if (pid === process.pid || !processUnder(pid)) return;
  process.kill(pid, signal);
  while (processUnder(pid)) await sleep(20);
}

const rootWithEngine =
  process.getuid?.() === 0 && process.platform === "linux" && Boolean(findProgram("dockerd"));

test.skipIf(!rootWithEngine)(
  "an engine that was killed is started again over what it left behind",
  async () => {
    const progress: string[] = [];
    await startEngine((text) => progress.push(text), place);
    expect(await pingEngine(engineAt(place.address))).toMatchObject({ answers: true });

    const first = Number(readFileSync(place.pidFile, "utf8"));
    await end(first, "SIGKILL");
    expect(existsSync(place.pidFile)).toBe(true);
    expect(await pingEngine(engineAt(place.address))).toMatchObject({ answers: false, denied: false });

    await startEngine((text) => progress.push(text), place);
    expect(await pingEngine(engineAt(place.address))).toMatchObject({ answers: true });
    expect(Number(readFileSync(place.pidFile, "utf8"))).not.toBe(first);
    expect(progress).toEqual(["starting dockerd", "starting dockerd"]);
  },
);

test.skipIf(!rootWithEngine)(
  "one that comes while another's engine is starting waits for that one",
  async () => {
    const first = startEngine(() => undefined, place);
    while (!existsSync(place.pidFile) || readFileSync(place.pidFile, "utf8") === "") await sleep(1);
    const pid = readFileSync(place.pidFile, "utf8");
    const progress: string[] = [];
    await Promise.all([first, startEngine((text) => progress.push(text), place)]);
    expect(progress).toEqual([`waiting for dockerd (pid ${pid}) to answer`]);
    expect(await pingEngine(engineAt(place.address))).toMatchObject({ answers: true });
  },
);

test.skipIf(!rootWithEngine)("set-up prints the last lines of an engine that does not start", async () => {
  place.argv.push("--no-such-option");
  await expect(startEngine(() => undefined, place)).rejects.toMatchObject({
    name: "SetupProblem",
    logFile: place.logFile,
    logTail: expect.stringContaining("no-such-option"),
  });
});

test("set-up removes an engine's pid file whose number belongs to another program", async () => {
  writeFileSync(place.pidFile, `${process.pid}`);
  await removeRemains(place);
  expect(existsSync(place.pidFile)).toBe(false);
});

test("set-up removes an engine's socket without a listener, and leaves one with a listener", async () => {
  const socket = path.join(place.execRoot, "containerd/containerd.sock");
  const server = net.createServer().listen(socket);
  await new Promise((resolve) => server.once("listening", resolve));
  await removeRemains(place);
  expect(existsSync(socket)).toBe(true);
  // Closing would remove the file; killed programs leave it, as a listener that was renamed away does.
  const kept = `${socket}.kept`;
  renameSync(socket, kept);
  await new Promise((resolve) => server.close(resolve));
  renameSync(kept, socket);
  await removeRemains(place);
  expect(existsSync(socket)).toBe(false);
});
