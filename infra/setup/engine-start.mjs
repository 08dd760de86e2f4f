/**
 * Starts a Docker engine on a machine whose service manager does not: a detached `dockerd` that outlives set-up.
 *
 * It uses dockerd's own pid file and socket, so a second clone, or the distribution's service, finds the same engine
 * instead of starting a rival on the same data. Set-up never ends an engine, not even one it started: another clone
 * may be using it by then.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemdRuns } from './apt.mjs';
import { DEFAULT_ADDRESS, engineAt, pingEngine } from './engine-api.mjs';
import { SetupProblem } from './problem.mjs';
import { outputOf, tailOf } from './run-command.mjs';
import { findProgram } from './search-path.mjs';

const PID_FILE = '/var/run/docker.pid';
const LOG_FILE = '/var/log/berth-dockerd.log';
const ANSWER_WITHIN_MS = 90_000;
const POLL_MS = 250;

/** @param {(text: string) => void} progress */
export async function startEngine(progress) {
  const engine = engineAt(DEFAULT_ADDRESS);
  if (systemdRuns()) {
    progress('starting docker.service');
    await outputOf('systemctl', ['start', 'docker'], { timeoutMs: 60_000 });
    if ((await pingEngine(engine)).answers) return;
  }
  await removeRemains();
  const running = pidIn(PID_FILE);
  const started = running ? undefined : spawnDetached();
  progress(running ? `waiting for dockerd (pid ${running}), which is starting` : 'starting dockerd');

  const deadline = Date.now() + ANSWER_WITHIN_MS;
  for (;;) {
    if ((await pingEngine(engine, 1_000)).answers) return;
    // A rival that took the pid file first makes ours exit at once; then the rival's engine is the one to wait for.
    if (started?.exited() && !pidIn(PID_FILE)) break;
    if (Date.now() > deadline) break;
    await sleep(POLL_MS);
  }
  throw new SetupProblem('The Docker engine was started but does not answer.', {
    why: started?.exited() ? 'dockerd ended again; its last words are below' : `no answer within ${ANSWER_WITHIN_MS / 1000} s`,
    fix: ['see the log; inside a container, dockerd needs --privileged. An engine elsewhere will do too: set DOCKER_HOST'],
    logFile: LOG_FILE,
    logTail: tailOf(LOG_FILE),
  });
}

function spawnDetached() {
  const log = openSync(LOG_FILE, 'a');
  const dockerd = findProgram('dockerd');
  // The engine outlives us and whatever ran us, so it gets nothing of ours but the PATH and what it may need to pull images.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(PATH|HOME|LANG|(https?|no)_proxy)$/i.test(name)),
  );
  const child = spawn(dockerd ?? 'dockerd', ['--pidfile', PID_FILE], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', log, log],
    env: { ...env, PATH: `${env.PATH ?? ''}:/usr/local/sbin:/usr/sbin:/sbin` },
  });
  closeSync(log);
  let exited = false;
  child.once('exit', () => {
    exited = true;
  });
  child.once('error', () => {
    exited = true;
  });
  child.unref();
  return { exited: () => exited };
}

/**
 * After a crash or a copied disk image, pid files name processes that are something else by now, and sockets have no
 * listener. dockerd would refuse to start over the first and hang on the second. Files whose process lives are left alone.
 */
async function removeRemains() {
  for (const [file, program] of [
    [PID_FILE, 'dockerd'],
    ['/var/run/docker/containerd/containerd.pid', 'containerd'],
  ]) {
    if (existsSync(file) && !pidIn(file, program)) rmSync(file, { force: true });
  }
  for (const socket of ['/run/containerd/containerd.sock', '/var/run/docker/containerd/containerd.sock']) {
    if (existsSync(socket) && !(await listens(socket))) rmSync(socket, { force: true });
  }
}

/** The pid in that file if such a program runs under it. */
function pidIn(file, program = 'dockerd') {
  try {
    const pid = Number(readFileSync(file, 'utf8').trim());
    const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
    return name === program ? pid : undefined;
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
    socket.once('connect', () => end(true));
    socket.once('error', (error) => end(error.code !== 'ECONNREFUSED'));
  });
}
