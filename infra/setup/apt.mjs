/**
 * Debian packages. Set-up may add packages only as root on a system with apt; everywhere else it says the exact
 * command and leaves it to the person.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { SetupProblem } from "./problem.mjs";
import { runLogged } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

const LISTS_FRESH_MS = 24 * 60 * 60_000;
// Another clone, or unattended-upgrades, may hold dpkg's lock for minutes. Its progress bars would fill the log.
const QUIET_AND_PATIENT = ["-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0"];

/** 'root': may install; 'user': apt is here but not ours to run; 'none': no apt on this system */
export function aptStanding() {
  if (process.platform !== "linux" || !findProgram("apt-get")) return "none";
  return process.getuid?.() === 0 ? "root" : "user";
}

/**
 * The advice for a user for whom set-up cannot install.
 * @param {string[]} packages
 */
export function installAdvice(packages) {
  if (aptStanding() === "user")
    return [`sudo apt-get update && sudo apt-get install -y ${packages.join(" ")}`];
  return [`install ${packages.join(", ")} (Debian's names) with this system's package manager`];
}

/**
 * @param {import('./context.mjs').Context} context
 * @param {string} step names the log file
 * @param {string[]} packages
 */
export async function aptInstall(context, step, packages) {
  const install = () => aptGet(context, step, "install", "-y", "--no-install-recommends", ...packages);
  const refreshed = await refreshLists(context, step);
  try {
    await install();
  } catch (firstFailure) {
    if (!(firstFailure instanceof SetupProblem)) throw firstFailure;
    // Two usual causes, both cured here: dpkg was cut off in the middle, or the lists name versions the mirror no longer has.
    await runLogged("dpkg", ["--configure", "-a"], aptOptions(context, step)).catch(() => undefined);
    if (!refreshed) await refreshLists(context, step, 0);
    await install();
  }
}

/**
 * Fetches the package lists when they are missing or older than `freshMs`, if that is ours to do.
 * @param {import('./context.mjs').Context} context
 * @param {string} step
 * @returns {Promise<boolean>} whether they were fetched
 */
export async function refreshLists(context, step, freshMs = LISTS_FRESH_MS) {
  if (aptStanding() !== "root" || listsAge() < freshMs) return false;
  // A failing third-party source must not stop us: if the lists we need are missing, the install itself fails with that message.
  await aptGet(context, step, "-q", "update").catch(() => undefined);
  return true;
}

function aptGet(context, step, ...argv) {
  return runLogged("apt-get", [...argv, ...QUIET_AND_PATIENT], aptOptions(context, step));
}

function aptOptions(context, step) {
  return {
    log: `${context.places.logs}/${step}.log`,
    root: context.places.root,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  };
}

function listsAge() {
  const folder = "/var/lib/apt/lists";
  try {
    const anyList = readdirSync(folder).some((file) => file.includes("_Packages"));
    return anyList ? Date.now() - statSync(`${folder}/partial`).mtimeMs : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** True where systemd is process 1 and answers for services; its programs may be installed without that. */
export function systemdRuns() {
  return existsSync("/run/systemd/system");
}

/** Fields of /etc/os-release; empty where there is none. */
export function osRelease() {
  /** @type {Record<string, string>} */
  const fields = {};
  try {
    for (const line of readFileSync("/etc/os-release", "utf8").split("\n")) {
      const [, key, value] = /^([A-Z_]+)="?([^"]*)"?$/.exec(line) ?? [];
      if (key) fields[key] = value ?? "";
    }
  } catch {
    // Not Linux, or a very small one.
  }
  return fields;
}
