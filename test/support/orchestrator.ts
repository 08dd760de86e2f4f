import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("orchestrator.mjs", import.meta.url));

/** `orchestrator.mjs` as a process of its own, and what it has said so far. */
export class Orchestrator {
  readonly #process: ChildProcess;
  #said = "";
  #complained = "";

  constructor(redis: string, ...args: string[]) {
    this.#process = spawn(process.execPath, ["--conditions=@berth/source", program, redis, ...args], {
      env: { PATH: process.env.PATH ?? "" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stdout?.on("data", (chunk: Buffer) => {
      this.#said += chunk;
    });
    this.#process.stderr?.on("data", (chunk: Buffer) => {
      this.#complained += chunk;
    });
  }

  get lines(): Record<string, unknown>[] {
    const whole = this.#said.slice(0, this.#said.lastIndexOf("\n") + 1);
    return whole.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }

  /** Its exit code and what it complained of, or the signal that ended it. */
  async ended(): Promise<string> {
    if (this.#process.exitCode === null && this.#process.signalCode === null)
      await once(this.#process, "close");
    return `${this.#process.exitCode ?? this.#process.signalCode}${this.#complained}`;
  }
}
