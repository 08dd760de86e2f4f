import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { repoRoot } from "./places.mjs";

/** Where `npm run build` puts the command, as its npm package has it. */
export const COMMAND_FOLDER = path.join(repoRoot, ".berth/command");

const program = path.join(COMMAND_FOLDER, "lib/apps/cli/dist/main.js");
const PARTS = ["src", "lua", "package.json"];

/** The built command, unless a source is newer than it. */
export function builtCommand() {
  if (!existsSync(program)) return undefined;
  const builtAt = statSync(program).mtimeMs;
  const packages = ["apps", "packages"].flatMap((group) =>
    readdirSync(path.join(repoRoot, group)).map((name) => path.join(repoRoot, group, name)),
  );
  const sources = packages.flatMap((folder) => PARTS.map((part) => path.join(folder, part)));
  return [path.join(repoRoot, "pnpm-lock.yaml"), ...sources].some((source) => isNewer(source, builtAt))
    ? undefined
    : program;
}

/** A folder is as new as the newest in it. Its own time tells of files that were removed. */
function isNewer(file, timeMs) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return false;
  if (stat.mtimeMs > timeMs) return true;
  return stat.isDirectory() && readdirSync(file).some((name) => isNewer(path.join(file, name), timeMs));
}
