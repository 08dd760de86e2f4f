import { closeSync, existsSync, openSync, readSync } from "node:fs";
import path from "node:path";
import { SetupProblem } from "./problem.mjs";
import { outputOf, runLogged } from "./run-command.mjs";
import { buildToolsStep } from "./step-build-tools.mjs";

/**
 * Process 1 of every sandbox. make is its own up-to-date check, so there is no stamp.
 * @type {import('./context.mjs').Step}
 */
export const initStep = {
  name: "init",
  async find(context) {
    const folder = folderIn(context);
    if (!existsSync(path.join(folder, "Makefile")))
      return { ready: true, text: "no packages/init/Makefile yet: nothing to build" };
    const upToDate = (await outputOf("make", ["-q", "-C", folder])) !== undefined;
    if (upToDate) return { ready: true, text: "up to date" };
    return { ready: false, text: "init, built from packages/init", needs: [{ at: folder, bytes: 5e6 }] };
  },
  async make(context, progress) {
    progress("make -C packages/init");
    const { root, logs } = context.places;
    await runLogged("make", ["-C", folderIn(context)], { log: path.join(logs, "init.log"), root });
  },
};

/** What the header of an executable names each processor by. */
const MACHINES = { x64: 62, arm64: 183 };

/**
 * The npm package has init as it was built for one processor, and its sources for the others.
 * @type {import('./context.mjs').Step}
 */
export const packagedInitStep = {
  name: "init",
  async find(context) {
    if (machineOf(path.join(folderIn(context), "build/init")) === MACHINES[process.arch])
      return { ready: true, text: `for ${process.arch}` };
    return { ready: false, text: `init for ${process.arch}, built from the package's sources` };
  },
  async make(context, progress) {
    if (process.platform !== "linux")
      throw new SetupProblem("init is a program for Linux, and cannot be built here.", {
        fix: ["run the fleet on Linux; the other commands work here with REDIS_URL or BERTH_URL"],
      });
    if (!(await buildToolsStep.find(context)).ready) await buildToolsStep.make(context, progress);
    await outputOf("make", ["-C", folderIn(context), "clean"]);
    await initStep.make(context, progress);
  },
};

/** The processor that an executable is for; undefined when there is none. */
function machineOf(file) {
  if (!existsSync(file)) return undefined;
  const header = Buffer.alloc(20);
  const handle = openSync(file, "r");
  readSync(handle, header);
  closeSync(handle);
  return header.readUInt16LE(18);
}

function folderIn(context) {
  return path.join(context.places.root, "packages/init");
}
