import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = new URL("../../", import.meta.url);
/** Where a whole run has put the apps as they are shipped. A start from there costs 0.3 s of a core; from source 1 s, or half with this cache. */
const { BERTH_TEST_PROGRAMS: shipped } = process.env;
const compileCache = fileURLToPath(new URL(".berth/compile-cache", repository));

export interface ProgramOptions {
  readonly args?: readonly string[];
  /** All that it gets. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: "ignore" | "pipe";
  readonly cwd?: string | undefined;
}

/** What Node is called with for an app of ours, by the path of its source in the repository. */
export function programArguments(path: string): readonly string[] {
  if (shipped === undefined) return ["--conditions=@berth/source", fileURLToPath(new URL(path, repository))];
  return [join(shipped, path.replace("/src/", "/dist/").replace(/\.ts$/, ".js"))];
}

/**
 * An app of ours as a process. When the process that started it is gone,
 * even by `kill -9`, it notices the end of the IPC channel and stops.
 */
export function startProgram(
  path: string,
  { args = [], env, stdin = "ignore", cwd }: ProgramOptions,
): ChildProcess {
  return spawn(process.execPath, [...programArguments(path), ...args], {
    env: { NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: [stdin, "pipe", "pipe", "ipc"],
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** redis-server, or a Sentinel: the kernel kills it when the process that started it is gone. */
export function startRedisServer(args: readonly string[], directory: string): ChildProcess {
  return spawn("setpriv", ["--pdeathsig=KILL", "redis-server", ...args], { stdio: "ignore", cwd: directory });
}
