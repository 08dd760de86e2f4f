import { existsSync } from "node:fs";
import path from "node:path";
import { outputOf, runLogged } from "./run-command.mjs";

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

function folderIn(context) {
  return path.join(context.places.root, "packages/init");
}
