import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { build, releaseBinary } from "./build.ts";

/** `init --mounter`, a line in, a line out. */
export class Mounter implements AsyncDisposable {
  readonly exited: Promise<number | null>;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  constructor(root: string) {
    build();
    this.#process = spawn("setpriv", ["--pdeathsig=KILL", releaseBinary, "--mounter", root], {
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: process.env.PATH },
    });
    this.#process.stdin.on("error", () => {});
    this.exited = new Promise((resolve) => this.#process.once("exit", (code) => resolve(code)));
    this.#lines = createInterface({ input: this.#process.stdout });
  }

  /** The answer without the request's id: errno and step. */
  async ask(request: string): Promise<string> {
    const answer = new Promise<string>((resolve) => this.#lines.once("line", resolve));
    this.#process.stdin.write(`7 ${request}\n`);
    return (await answer).replace(/^7 /, "");
  }

  write(text: string): void {
    this.#process.stdin.write(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.stdin.end();
    await this.exited;
  }
}
