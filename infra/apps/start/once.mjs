import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/**
 * The text of a file that the first process writes, and no later one. Written aside and linked: making a
 * link is atomic and refuses an existing name, so that many processes that start together agree, and none meets half a file.
 * @param {string} file
 * @param {() => string} make
 * @param {number} mode
 */
export function writtenOnce(file, make, mode) {
  const found = readIfThere(file);
  if (found !== undefined) return found;
  const aside = `${file}.${process.pid}-${Math.random().toString(36).slice(2)}`;
  writeFileSync(aside, make(), { mode, flag: "wx" });
  try {
    linkSync(aside, file);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    rmSync(aside);
  }
  return readFileSync(file, "utf8");
}

function readIfThere(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}
