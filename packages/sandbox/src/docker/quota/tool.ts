import { execFile } from "node:child_process";

const toolMs = 60_000;

/** Runs a program of the host without a shell. Throws the last line of its stderr, unless it ends with 0 or `goodCode`. */
export function runTool(program: string, args: readonly string[], goodCode = 0): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };
    execFile(program, args, { timeout: toolMs, env }, (error, stdout, stderr) => {
      if (!error || error.code === goodCode) return resolve(stdout);
      const lastLine = stderr.trim().split("\n").at(-1) ?? "";
      const why = error.code === "ENOENT" ? "it is not installed" : lastLine || error.message;
      reject(new Error(`${program}: ${why}`, { cause: error }));
    });
  });
}
