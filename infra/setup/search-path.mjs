import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

// Debian leaves the sbin folders out of an ordinary user's PATH, and dockerd and iptables live there.
const SYSTEM_FOLDERS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/**
 * The first executable file of that name on the PATH, or undefined.
 * @param {string} name
 * @param {string | undefined} searchPath
 */
export function findProgram(name, searchPath = process.env.PATH) {
  for (const folder of [...(searchPath ?? "").split(path.delimiter), ...SYSTEM_FOLDERS]) {
    if (!folder) continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // Not here, or not ours to run: the next folder may have it.
    }
  }
  return undefined;
}

/**
 * `environment` with `folders` searched first.
 * @param {string[]} folders
 * @param {NodeJS.ProcessEnv} environment
 * @returns {NodeJS.ProcessEnv}
 */
export function withPathFirst(folders, environment) {
  const rest = (environment.PATH ?? "")
    .split(path.delimiter)
    .filter((folder) => folder && !folders.includes(folder));
  return { ...environment, PATH: [...folders, ...rest].join(path.delimiter) };
}
