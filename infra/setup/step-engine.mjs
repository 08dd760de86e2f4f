import { existsSync, readFileSync, statSync } from "node:fs";
import os from "node:os";
import { aptInstall, aptStanding, installAdvice, systemdRuns } from "./apt.mjs";
import { DEFAULT_ADDRESS, engineAddresses, engineAt, pingEngine } from "./engine-api.mjs";
import { startEngine } from "./engine-start.mjs";
import { SetupProblem } from "./problem.mjs";
import { findProgram } from "./search-path.mjs";

/** @type {import('./context.mjs').Step} */
export const engineStep = {
  name: "engine",
  shared: true,
  async find(context) {
    const answers = await askAll(context);
    const found = answers.find((answer) => answer.ping.answers);
    if (found?.ping.answers) {
      context.engine = found.engine;
      return { ready: true, text: `Docker ${found.ping.version} at ${found.engine.address}` };
    }
    const denied = answers.find((answer) => !answer.ping.answers && answer.ping.denied);
    if (denied)
      return { ready: false, text: `permission to use the Docker engine at ${denied.engine.address}` };
    return {
      ready: false,
      text: `a Docker engine (none answers at ${answers[0]?.engine.address})`,
      needs: findProgram("dockerd") ? [] : [{ at: "/usr", bytes: 450e6 }],
    };
  },
  async make(context, progress) {
    const answers = await askAll(context);
    const denied = answers.find((answer) => !answer.ping.answers && answer.ping.denied);
    if (denied) throw permissionProblem(denied.engine);
    const chosen = context.environment.DOCKER_HOST;
    if (chosen && chosen !== DEFAULT_ADDRESS) {
      const why = answers[0]?.ping.answers === false ? answers[0].ping.why : undefined;
      throw new SetupProblem(`DOCKER_HOST is ${chosen}, but no Docker engine answers there.`, {
        why,
        fix: ["start that engine, or unset DOCKER_HOST to use (or install) one on this machine"],
      });
    }
    if (process.platform !== "linux") {
      throw new SetupProblem("No Docker engine answers.", {
        fix: ["install and start Docker Desktop (or another engine), then run this again"],
      });
    }
    if (process.getuid?.() !== 0) {
      throw new SetupProblem("No Docker engine answers, and only root can install or start one.", {
        fix: findProgram("dockerd")
          ? [systemdRuns() ? "sudo systemctl start docker" : "sudo dockerd &"]
          : [
              ...installAdvice(enginePackages()),
              "or run this set-up as root once, or set DOCKER_HOST to an engine elsewhere",
            ],
      });
    }
    if (!findProgram("dockerd")) {
      if (aptStanding() !== "root") {
        throw new SetupProblem("No Docker engine is installed.", { fix: installAdvice(enginePackages()) });
      }
      progress(`installing ${enginePackages().join(" ")}`);
      await aptInstall(context, "engine", enginePackages());
    }
    await startEngine(progress);
  },
};

async function askAll(context) {
  const engines = engineAddresses(context.environment).map((address) =>
    engineAt(address, context.environment),
  );
  return Promise.all(engines.map(async (engine) => ({ engine, ping: await pingEngine(engine) })));
}

function enginePackages() {
  const packages = ["docker.io", "iptables", "ca-certificates"];
  // With AppArmor on in the kernel, dockerd fails every container start unless it can load its profile.
  const appArmor = "/sys/module/apparmor/parameters/enabled";
  if (existsSync(appArmor) && readFileSync(appArmor, "utf8").startsWith("Y")) packages.push("apparmor");
  return packages;
}

function permissionProblem(engine) {
  const socket = engine.request.socketPath;
  const group = socket && existsSync(socket) ? groupName(statSync(socket).gid) : "docker";
  return new SetupProblem(`A Docker engine is at ${engine.address}, but this user may not use it.`, {
    why: `the socket belongs to group ${group}, and ${os.userInfo().username} is not in it`,
    fix: [`sudo usermod -aG ${group} ${os.userInfo().username}`, "then log in again (or: newgrp docker)"],
  });
}

function groupName(gid) {
  const line = readFileSync("/etc/group", "utf8")
    .split("\n")
    .find((entry) => entry.split(":")[2] === String(gid));
  return line?.split(":")[0] ?? String(gid);
}
