import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";

/**
 * Puts init where the engine can find it. The engine mounts it into sandboxes by its path on the host, where the worker's own
 * image is not; the folder of the workspaces is, under the same path. Named by its content: versions lie side by side, so that
 * an upgrade changes nothing under a sandbox that runs.
 * @param {string} workspaces
 * @param {string} init
 * @returns {string} its path, here and on the host
 */
export function placeInit(workspaces, init) {
  const hash = hashOf(init);
  if (hash === undefined) throw new Error(`there is no init at ${init}`);
  const folder = path.join(workspaces, ".init");
  const place = path.join(folder, hash.slice(0, 16));
  if (hashOf(place) === hash) return place;
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const aside = `${place}.${process.pid}-${Math.random().toString(36).slice(2)}`;
  copyFileSync(init, aside);
  chmodSync(aside, 0o755);
  renameSync(aside, place);
  return place;
}

function hashOf(file) {
  try {
    return createHash("sha256").update(readFileSync(file)).digest("hex");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
