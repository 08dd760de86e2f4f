import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { expect } from "vitest";
import { startProgram } from "./program.ts";

export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
}

export interface CliEnd {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the `berth` command as a process, with only PATH of the test's environment. */
export class CliRun {
  readonly process: ChildProcess;
  readonly #ended: Promise<number | string>;
  readonly #stdout: Buffer[] = [];
  readonly #stderr: Buffer[] = [];

  constructor(args: readonly string[], { env, stdin, cwd }: CliOptions = {}) {
    const engine = process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST };
    this.process = startProgram("apps/cli/src/main.ts", {
      args,
      env: { PATH: process.env.PATH ?? "", ...engine, ...env },
      stdin: "pipe",
      cwd,
    });
    this.process.stdout?.on("data", (chunk: Buffer) => this.#stdout.push(chunk));
    this.process.stderr?.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    // A test that does not read stdout closes it.
    this.process.stdin?.on("error", () => {});
    this.process.stdin?.end(stdin);
    this.#ended = once(this.process, "close").then(([code, signal]) => code ?? signal);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#stdout);
  }

  get stdout(): string {
    return this.bytes.toString();
  }

  get stderr(): string {
    return Buffer.concat(this.#stderr).toString();
  }

  /** Waits until stdout contains a text. */
  async says(text: string, on: "stdout" | "stderr" = "stdout"): Promise<void> {
    await expect.poll(() => this[on], { timeout: 30_000, interval: 20 }).toContain(text);
  }

  async end(): Promise<CliEnd> {
    const code = await this.#ended;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }

  async signal(signal: NodeJS.Signals): Promise<CliEnd> {
    this.process.kill(signal);
    return this.end();
  }
}

export function runCli(args: readonly string[], options?: CliOptions): Promise<CliEnd> {
  return new CliRun(args, options).end();
}
