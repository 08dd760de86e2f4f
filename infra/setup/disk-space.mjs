import { statfsSync, statSync } from "node:fs";
import path from "node:path";
import { SetupProblem } from "./problem.mjs";

/** Left free on top of what is to be installed: logs, workspaces and test containers need room to run. */
const MARGIN_BYTES = 512 * 1024 * 1024;

/**
 * @typedef {{ at: string, bytes: number }} Need bytes that will be written beneath `at`
 * @typedef {{ device: number, at: string, freeBytes: number }} Volume
 */

/**
 * Says how much is free and needed per file system, or throws when it will not do. Only what is still to be done
 * counts: a machine that has everything is not refused for being nearly full.
 * @param {Need[]} needs
 * @param {(at: string) => Volume} volumeOf
 */
export function judgeDisk(needs, volumeOf = volumeAt) {
  /** @type {Map<number, Volume & { neededBytes: number }>} */
  const volumes = new Map();
  for (const need of needs) {
    const volume = volumeOf(need.at);
    const entry = volumes.get(volume.device) ?? { ...volume, neededBytes: 0 };
    entry.neededBytes += need.bytes;
    volumes.set(volume.device, entry);
  }
  const parts = [];
  for (const volume of volumes.values()) {
    const wanted = volume.neededBytes > 0 ? volume.neededBytes + MARGIN_BYTES : 0;
    if (volume.freeBytes < wanted) {
      throw new SetupProblem(
        `Not enough free disk: ${inGiB(volume.freeBytes)} free at ${volume.at}, ${inGiB(wanted)} needed.`,
        {
          why: `${inGiB(volume.neededBytes)} are still to be installed, and ${inGiB(MARGIN_BYTES)} must stay free to run anything`,
          fix: [
            "free some space there (unused Docker images are the usual candidates: docker system df), then run this again",
          ],
        },
      );
    }
    parts.push(
      `${inGiB(volume.freeBytes)} free at ${volume.at}, ${wanted > 0 ? `${inGiB(wanted)} needed` : "nothing needed"}`,
    );
  }
  return parts.join("; ");
}

/** @param {string} at a path that may not exist yet: its nearest existing parent is asked */
export function volumeAt(at) {
  let folder = path.resolve(at);
  for (;;) {
    try {
      const { dev } = statSync(folder);
      const { bavail, bsize } = statfsSync(folder);
      return { device: dev, at: folder, freeBytes: bavail * bsize };
    } catch (error) {
      const parent = path.dirname(folder);
      if (parent === folder) throw error;
      folder = parent;
    }
  }
}

function inGiB(bytes) {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
