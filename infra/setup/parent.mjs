import { readFileSync } from "node:fs";
import path from "node:path";
import { processUnder } from "./process-state.mjs";

const POLL_MS = 500;
const parent = process.ppid;
/** npm's pid where its shell waits for this script; a shell that replaced itself with the script is not between us. */
const grandparent = isShellOfThisScript(parent) ? processUnder(parent)?.parent : undefined;

/**
 * Calls `onGone` once when npm, which started this script, is gone; also when only the shell between the two is. Does
 * nothing for a script that npm did not start: that one may be meant to outlive its parent, as with `nohup`.
 * @param {() => void} onGone
 * @returns {() => void} stops watching
 */
export function watchNpm(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return () => {};
  const timer = setInterval(() => {
    // A process whose parent ends gets another one at once, so a pid that is used again is no trouble.
    const hasNpm = grandparent === undefined || processUnder(parent)?.parent === grandparent;
    if (process.ppid === parent && hasNpm) return;
    clearInterval(timer);
    onGone();
  }, POLL_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** npm gives the script to the shell as one argument with spaces in it. Without /proc the answer is no. */
function isShellOfThisScript(pid) {
  const script = path.basename(process.argv[1] ?? "");
  try {
    const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return script !== "" && argv.some((word) => word.includes(" ") && word.includes(script));
  } catch {
    return false;
  }
}
