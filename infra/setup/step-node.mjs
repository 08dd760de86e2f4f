import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { NODE_MAJOR, NODE_VERSION } from "./places.mjs";
import { SetupProblem } from "./problem.mjs";
import { outputOf, runLogged } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";

/** npm's own packages of Node's binaries, one per platform, without the install script that the `node` package needs. */
const PACKAGE = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;

/** @type {import('./context.mjs').Step} */
export const nodeStep = {
  name: "node",
  async find(context) {
    const kept = path.join(folderIn(context), "node_modules", PACKAGE, "bin/node");
    const candidates = [process.execPath, findProgram("node", context.environment.PATH), kept];
    for (const file of new Set(candidates)) {
      const version = file && (await versionOf(file));
      if (!version || Number(version.split(".")[0]) < NODE_MAJOR) continue;
      context.node = { file, version };
      const where = file === kept ? ` (${path.relative(context.places.root, file)})` : "";
      return { ready: true, text: `v${version}${where}` };
    }
    return {
      ready: false,
      text: `Node ${NODE_MAJOR} or newer (this is ${process.version}); v${NODE_VERSION} will be fetched with npm`,
      needs: [{ at: context.places.tools, bytes: 250e6 }],
    };
  },
  async make(context, progress) {
    progress(`fetching node ${NODE_VERSION} with npm`);
    try {
      await npmInstall(context, "node", folderIn(context), `${PACKAGE}@${NODE_VERSION}`);
    } catch (error) {
      if (!(error instanceof SetupProblem)) throw error;
      error.fix.push(
        `install Node ${NODE_MAJOR} or newer yourself and put it first on the PATH, then run this again`,
      );
      throw error;
    }
  },
};

/**
 * Installs one npm package into a folder of its own beneath `.berth/tools`.
 * @param {import('./context.mjs').Context} context
 * @param {string} step
 * @param {string} folder
 * @param {string} spec
 */
export async function npmInstall(context, step, folder, spec) {
  // npm takes what a cut-off install left for a finished one.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // Without a package.json here npm would climb to the repository's own and install into that.
  writeFileSync(path.join(folder, "package.json"), '{ "private": true }\n');
  const argv = [
    "install",
    "--prefix",
    folder,
    "--save-exact",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts=false",
    spec,
  ];
  await runLogged("npm", argv, {
    log: path.join(context.places.logs, `${step}.log`),
    root: context.places.root,
    cwd: folder,
    timeoutMs: 10 * 60_000,
  });
}

function folderIn(context) {
  return path.join(context.places.tools, `node-${NODE_VERSION}`);
}

async function versionOf(file) {
  if (file === process.execPath) return process.versions.node;
  return (await outputOf(file, ["--version"]))?.trim().replace(/^v/, "");
}
