/**
 * Starts a Docker engine on a machine whose service manager does not: a detached `dockerd` that outlives set-up.
 *
 * It uses dockerd's own pid file and socket, so a second clone, or the distribution's service, finds the same engine
 * instead of starting a rival on the same data. Set-up never ends an engine, not even one it started: another clone
 * may be using it by then.
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { systemdRuns } from "./apt.mjs";
import { DEFAULT_ADDRESS, engineAt, pingEngine } from "./engine-api.mjs";
import { SetupProblem } from "./problem.mjs";
import { processUnder } from "./process-state.mjs";
import { outputOf, tailOf } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

const ANSWER_WITHIN_MS = 90_000;
const SETTLE_WITHIN_MS = 3_000;
const POLL_MS = 250;

/**
 * Where an engine lives. Tests start one of their own elsewhere.
 * @typedef {{ address: string, pidFile: string, logFile: string, execRoot: string, argv: string[], service?: string }} EnginePlace
 * @type {EnginePlace}
 */
export const MACHINE_ENGINE = {
  address: DEFAULT_ADDRESS,
  pidFile: "/var/run/docker.pid",
  logFile: "/var/log/berth-dockerd.log",
  execRoot: "/var/run/docker",
  argv: [],
  service: "docker",
};

/**
 * @param {(text: string) => void} progress
 * @param {EnginePlace} place
 */
export async function startEngine(progress, place = MACHINE_ENGINE) {
  const engine = engineAt(place.address);
  if (place.service && systemdRuns()) {
    progress(`starting ${place.service}.service`);
    await outputOf("systemctl", ["start", place.service], { timeoutMs: 60_000 });
    if ((await pingEngine(engine)).answers) return;
  }
  await removeRemains(place);
  const running = pidIn(place.pidFile, "dockerd");
  const started = running ? undefined : spawnDetached(place);
  progress(running ? `waiting for dockerd (pid ${running}) to answer` : "starting dockerd");

  const deadline = Date.now() + ANSWER_WITHIN_MS;
  for (;;) {
    if ((await pingEngine(engine, 1_000)).answers) return;
    // A rival that took the pid file first makes ours exit at once; then the rival's engine is the one to wait for.
    if (started?.exited() && !pidIn(place.pidFile, "dockerd")) break;
    if (Date.now() > deadline) break;
    await sleep(POLL_MS);
  }
  throw new SetupProblem("The Docker engine was started but does not answer.", {
    why: started?.exited()
      ? "dockerd ended again; its last words are below"
      : `no answer within ${ANSWER_WITHIN_MS / 1000} s`,
    fix: [
      "see the log; inside a container, dockerd needs --privileged. An engine elsewhere will do too: set DOCKER_HOST",
    ],
    logFile: place.logFile,
    logTail: lastWords(place.logFile),
  });
}

/** dockerd logs more lines after the one with the reason for its exit. */
function lastWords(logFile) {
  const lines = tailOf(logFile, 60).split("\n");
  return lines
    .filter((line) => !/ level=(info|debug) | module=grpc$/.test(line))
    .slice(-12)
    .join("\n");
}

function spawnDetached(place) {
  const log = openSync(place.logFile, "a");
  // The engine outlives us and our parent, so it gets only the variables that it may need to pull images.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(PATH|HOME|LANG|(https?|no)_proxy)$/i.test(name)),
  );
  const child = spawn(findProgram("dockerd") ?? "dockerd", ["--pidfile", place.pidFile, ...place.argv], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", log, log],
    env: { ...env, PATH: `${env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin` },
  });
  closeSync(log);
  let exited = false;
  const onExit = () => {
    exited = true;
  };
  child.once("exit", onExit).once("error", onExit);
  child.unref();
  return { exited: () => exited };
}

/**
 * After a crash or a copied disk image, pid files name processes that are something else by now, and sockets have no
 * listener. dockerd would refuse to start over the first and hang on the second. Files whose process lives are left alone.
 * @param {EnginePlace} place
 */
export async function removeRemains(place) {
  const containerd = `${place.execRoot}/containerd/containerd`;
  await settled(() => existsSync(place.pidFile) && readFileSync(place.pidFile, "utf8") === "");
  if (pidIn(place.pidFile, "dockerd")) return;
  rmSync(place.pidFile, { force: true });
  // The kernel ends containerd when its dockerd dies. A new dockerd that still sees it would adopt it, and fail.
  await settled(() => pidIn(`${containerd}.pid`, "containerd") !== undefined);
  if (!pidIn(`${containerd}.pid`, "containerd")) rmSync(`${containerd}.pid`, { force: true });
  for (const socket of ["/run/containerd/containerd.sock", `${containerd}.sock`]) {
    if (existsSync(socket) && !(await listens(socket))) rmSync(socket, { force: true });
  }
}

/** Waits while something is only passing: a pid file between being made and written, a process between dying and dead. */
async function settled(isPassing) {
  const deadline = Date.now() + SETTLE_WITHIN_MS;
  while (isPassing() && Date.now() < deadline) await sleep(20);
}

/** The pid in that file if such a program runs under it. */
function pidIn(file, program) {
  try {
    const pid = Number(readFileSync(file, "utf8").trim());
    return processUnder(pid)?.name === program ? pid : undefined;
  } catch {
    return undefined;
  }
}

function listens(socketPath) {
  return new Promise((resolve) => {
    const socket = net.connect(socketPath);
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(2_000, () => end(true));
    socket.once("connect", () => end(true));
    socket.once("error", (/** @type {NodeJS.ErrnoException} */ error) => end(error.code !== "ECONNREFUSED"));
  });
}
