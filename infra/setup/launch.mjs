import { spawn } from "node:child_process";
import { constants } from "node:os";
import path from "node:path";
import { berthEnvironment } from "./context.mjs";
import { watchNpm } from "./parent.mjs";

/** @type {NodeJS.Signals[]} */
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Hands over to a program of Berth's, run from source by the Node that set-up found; its exit code is the answer. The
 * program gets a SIGTERM when npm is gone, and sees by the end of its IPC channel when this process is.
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
      stdio: ["inherit", "inherit", "inherit", "ipc"],
    },
  );
  let isForwarded = false;
  for (const signal of FORWARDED) {
    process.on(signal, () => {
      isForwarded = true;
      // Ctrl-C on a terminal reaches the child by itself; passed on as well it would count as the second, impatient one.
      if (signal === "SIGINT" && process.stdin.isTTY) return;
      child.kill(signal);
    });
  }
  watchNpm(() => {
    // A second signal would mean "at once": a shell that a signal ended with us is no reason for one.
    if (!isForwarded) child.kill("SIGTERM");
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      resolve(code ?? 128 + (constants.signals[signal ?? "SIGTERM"] ?? 0)),
    );
  });
}
