import path from "node:path";
import { PNPM_VERSION } from "./places.mjs";
import { outputOf } from "./run-command.mjs";
import { findProgram } from "./search-path.mjs";
import { npmInstall } from "./step-node.mjs";

/** @type {import('./context.mjs').Step} */
export const pnpmStep = {
  name: "pnpm",
  async find(context) {
    const kept = path.join(folderIn(context), "node_modules/.bin/pnpm");
    for (const file of [kept, findProgram("pnpm", context.environment.PATH)]) {
      if (!file) continue;
      // Asked outside the clone: inside it, a pnpm of another version reads `packageManager` and fetches the right one first.
      const version = await outputOf(file, ["--version"], { cwd: "/" });
      if (version?.trim() !== PNPM_VERSION) continue;
      context.pnpm = file;
      const where = file === kept ? ` (${path.relative(context.places.root, file)})` : "";
      return { ready: true, text: `${PNPM_VERSION}${where}` };
    }
    return {
      ready: false,
      text: `pnpm ${PNPM_VERSION} (exactly this version writes our lockfile)`,
      needs: [{ at: context.places.tools, bytes: 120e6 }],
    };
  },
  async make(context, progress) {
    progress(`fetching pnpm ${PNPM_VERSION} with npm`);
    await npmInstall(context, "pnpm", folderIn(context), `pnpm@${PNPM_VERSION}`);
  },
};

function folderIn(context) {
  return path.join(context.places.tools, `pnpm-${PNPM_VERSION}`);
}
