import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const repository = new URL("../../", import.meta.url);

export interface ProgramOptions {
  readonly args?: readonly string[];
  /** All that it gets. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: "ignore" | "pipe";
  readonly cwd?: string | undefined;
}

/**
 * An app of ours as a process, from source, by its path in the repository. When the process that started it is gone,
 * even by `kill -9`, it notices the end of the IPC channel and stops.
 */
export function startProgram(
  path: string,
  { args = [], env, stdin = "ignore", cwd }: ProgramOptions,
): ChildProcess {
  const program = fileURLToPath(new URL(path, repository));
  return spawn(process.execPath, ["--conditions=@berth/source", program, ...args], {
    env: { ...env },
    stdio: [stdin, "pipe", "pipe", "ipc"],
    ...(cwd === undefined ? {} : { cwd }),
  });
}

/** redis-server, or a Sentinel: the kernel kills it when the process that started it is gone. */
export function startRedisServer(args: readonly string[], directory: string): ChildProcess {
  return spawn("setpriv", ["--pdeathsig=KILL", "redis-server", ...args], { stdio: "ignore", cwd: directory });
}
