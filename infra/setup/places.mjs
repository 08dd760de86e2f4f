/**
 * Where set-up keeps what it makes. Everything lives under the clone's git-ignored `.berth/`, so removing that
 * folder (and `node_modules`) undoes set-up except for what the machine itself was given: packages and an engine.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";

export const NODE_MAJOR = 24;
export const NODE_VERSION = "24.21.0";
export const PNPM_VERSION = "12.18.0";

export const repoRoot = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");

/** @param {string} root the clone that is being set up; tests pass a folder of their own */
export function placesIn(root) {
  const state = path.join(root, ".berth");
  return {
    root,
    state,
    tools: path.join(state, "tools"),
    logs: path.join(state, "log"),
    stamps: path.join(state, "stamp"),
    lock: path.join(state, "setup.lock"),
  };
}
