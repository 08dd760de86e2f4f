import { existsSync, readFileSync } from "node:fs";
import { aptInstall, aptStanding, installAdvice, systemdRuns } from "./apt.mjs";
import { SetupProblem } from "./problem.mjs";
import { processUnder } from "./process-state.mjs";
import { outputOf } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

const PACKAGE = "redis-server";
const DAEMON_PID_FILE = "/run/redis/redis-server.pid";

/**
 * Only the program is wanted: Berth and its tests start servers of their own, on their own ports, and stop them.
 * @type {import('./context.mjs').Step}
 */
export const redisStep = {
  name: "redis-server",
  shared: true,
  async find(context) {
    if (context.environment.REDIS_URL) return { ready: true, text: "using REDIS_URL" };
    const file = findProgram("redis-server", context.environment.PATH);
    const version = file && /v=(\S+)/.exec((await outputOf(file, ["--version"])) ?? "")?.[1];
    if (version) return { ready: true, text: `${version} (${file})` };
    return { ready: false, text: "redis-server, or a REDIS_URL", needs: [{ at: "/usr", bytes: 20e6 }] };
  },
  async make(context, progress) {
    if (aptStanding() !== "root") {
      throw new SetupProblem("redis-server is not installed.", {
        fix: [...installAdvice([PACKAGE]), "or set REDIS_URL to a Redis you already have"],
      });
    }
    progress(`installing ${PACKAGE}`);
    await aptInstall(context, "redis", [PACKAGE]);
    await stopPackagedDaemon();
  },
};

/** Debian's package starts and enables a server on port 6379 where it can. We installed it, so that one is ours to stop. */
async function stopPackagedDaemon() {
  if (systemdRuns()) await outputOf("systemctl", ["disable", "--now", PACKAGE], { timeoutMs: 60_000 });
  else if (daemonRuns()) await outputOf("/etc/init.d/redis-server", ["stop"], { timeoutMs: 60_000 });
  if (!daemonRuns()) return;
  throw new SetupProblem("The redis-server that came with the package is still running.", {
    why: "its pid file names a live process, and asking its service to stop did not end it",
    fix: [`stop it, or keep it and set REDIS_URL`],
  });
}

function daemonRuns() {
  if (!existsSync(DAEMON_PID_FILE)) return false;
  return processUnder(Number(readFileSync(DAEMON_PID_FILE, "utf8")))?.name === "redis-server";
}
