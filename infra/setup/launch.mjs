import { spawn } from "node:child_process";
import { constants } from "node:os";
import path from "node:path";
import { berthEnvironment } from "./context.mjs";

/** @type {NodeJS.Signals[]} */
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Hands over to a program of Berth's, run from source by the Node that set-up found; its exit code is the answer.
 * @param {import('./context.mjs').Context} context after a set-up
 * @param {string} program path in the repository
 * @param {string[]} argv
 * @returns {Promise<number>}
 */
export function launch(context, program, argv) {
  const file = context.node?.file ?? process.execPath;
  const child = spawn(
    file,
    ["--conditions=@berth/source", path.join(context.places.root, program), ...argv],
    {
      cwd: context.places.root,
      env: berthEnvironment(context),
      stdio: "inherit",
    },
  );
  for (const signal of FORWARDED) {
    process.on(signal, () => {
      // Ctrl-C on a terminal reaches the child by itself; passed on as well it would count as the second, impatient one.
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      resolve(code ?? 128 + (constants.signals[signal ?? "SIGTERM"] ?? 0)),
    );
  });
}
