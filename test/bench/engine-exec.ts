import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type Docker from "dockerode";

/**
 * One command through the engine's API: create, start, read to the end, ask for the exit code. Its output is counted and
 * not taken apart, which costs the baseline less than a caller would have to spend. Returns the bytes.
 */
export async function apiExec(container: Docker.Container, argv: readonly string[]): Promise<number> {
  const exec = await container.exec({ Cmd: [...argv], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: false });
  const bytes = await drained(stream);
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`${argv.join(" ")} through the API: exit code ${ExitCode}`);
  return bytes;
}

export function drained(stream: NodeJS.ReadableStream): Promise<number> {
  let bytes = 0;
  return new Promise((resolve, reject) => {
    stream.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    stream.once("end", () => resolve(bytes));
    stream.once("error", reject);
    (stream as Readable).once("close", () => resolve(bytes));
  });
}

/** Runs a program on this machine, and drops its output. */
export function hostSpawn(
  command: string,
  argv: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.resume();
    child.stderr.resume();
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${command} ${argv.join(" ")}: ${signal ?? `exit code ${code}`}`));
    });
  });
}

/** Whether the `docker` command is installed. Only its baselines need it. */
export async function hasDockerCli(): Promise<boolean> {
  try {
    await hostSpawn("docker", ["version"]);
    return true;
  } catch {
    return false;
  }
}
