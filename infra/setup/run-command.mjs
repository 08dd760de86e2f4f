import { spawn } from "node:child_process";
import { appendFileSync, closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import path from "node:path";
import { SetupProblem } from "./problem.mjs";

const TAIL_LINES = 15;

/**
 * Runs a program to its end without a shell; all it prints goes to the step's log. Rejects with a SetupProblem that
 * shows the log's last lines.
 * @param {string} file
 * @param {string[]} argv
 * @param {{ log: string, root: string, cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number }} options
 */
export async function runLogged(file, argv, options) {
  mkdirSync(path.dirname(options.log), { recursive: true });
  appendFileSync(options.log, `\n$ ${[file, ...argv].join(" ")}\n`);
  const logHandle = openSync(options.log, "a");
  let ended;
  try {
    ended = await untilEnd(
      spawn(file, argv, {
        cwd: options.cwd ?? options.root,
        env: options.env ?? process.env,
        stdio: ["ignore", logHandle, logHandle],
      }),
      options.timeoutMs ?? 20 * 60_000,
    );
  } finally {
    closeSync(logHandle);
  }
  if (ended.code === 0) return;
  throw new SetupProblem(`${path.basename(file)} ${argv[0] ?? ""} ${ended.text}.`, {
    logFile: path.relative(options.root, options.log),
    logTail: tailOf(options.log),
  });
}

/**
 * Runs a program that prints little and returns what it printed; undefined when it failed or could not be started.
 * @param {string} file
 * @param {string[]} argv
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number }} [options]
 * @returns {Promise<string | undefined>}
 */
export async function outputOf(file, argv, options = {}) {
  const child = spawn(file, argv, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  const ended = await untilEnd(child, options.timeoutMs ?? 30_000);
  return ended.code === 0 ? text : undefined;
}

/** @param {string} file */
export function tailOf(file, lines = TAIL_LINES) {
  try {
    return readFileSync(file, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "";
  }
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {number} timeoutMs
 * @returns {Promise<{ code: number | null, text: string }>}
 */
export function untilEnd(child, timeoutMs) {
  return new Promise((resolve) => {
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGTERM");
    }, timeoutMs);
    child.once("error", (error) => {
      clearTimeout(timer);
      resolve({ code: null, text: `could not be started (${error.message})` });
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      const seconds = Math.round(timeoutMs / 1000);
      if (timedOut) resolve({ code: null, text: `did not end within ${seconds} s and was stopped` });
      else if (signal) resolve({ code: null, text: `was ended by ${signal}` });
      else resolve({ code, text: `ended with exit code ${code}` });
    });
  });
}
