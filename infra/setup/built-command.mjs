import { readdirSync, statSync } from "node:fs";
import path from "node:path";

const PARTS = ["src", "c", "lua", "package.json"];

/** Where `npm run build` puts the command, as its npm package has it. */
export function commandFolder(root) {
  return path.join(root, ".berth/command");
}

/**
 * The built command, unless a source is newer than it.
 * @param {string} root the clone
 * @returns {string | undefined}
 */
export function builtCommand(root) {
  const program = path.join(commandFolder(root), "lib/apps/cli/dist/main.js");
  const builtAt = statSync(program, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAt === undefined) return undefined;
  const packages = ["apps", "packages"].flatMap((group) =>
    readdirSync(path.join(root, group)).map((name) => path.join(root, group, name)),
  );
  const sources = packages.flatMap((folder) => PARTS.map((part) => path.join(folder, part)));
  const isStale = [path.join(root, "pnpm-lock.yaml"), ...sources].some((source) => isNewer(source, builtAt));
  return isStale ? undefined : program;
}

/** A folder is as new as the newest file in it. Its own time changes when files are removed. */
function isNewer(file, timeMs) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return false;
  if (stat.mtimeMs > timeMs) return true;
  return stat.isDirectory() && readdirSync(file).some((name) => isNewer(path.join(file, name), timeMs));
}
