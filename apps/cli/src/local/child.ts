import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import type { Writable } from "node:stream";
import { Complaint } from "../complaint.ts";

export interface ChildOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** A program of ours: it stops by itself when the IPC channel to this process ends. */
  readonly endsWithUs?: boolean;
  /** Held open for as long as it runs. */
  readonly holds?: Writable | undefined;
  /** It is ready when a line of its output has this; at once when absent. */
  readonly readyWord?: string;
  /** It ended without being told to. */
  readonly onEnd?: (name: string, how: string) => void;
}

/** What a child that was told to stop gets before it is killed. */
const stopMs = 40_000;
const shownLines = 8;

/** A program as a process of its own, its output in a file. */
export class LocalChild {
  /** The line that said it was ready. */
  readyLine = "";
  readonly #options: ChildOptions;
  readonly #process: ChildProcess;
  readonly #log: WriteStream;
  #last: string[] = [];
  #stopping = false;

  constructor(options: ChildOptions) {
    this.#options = options;
    this.#log = createWriteStream(options.logFile);
    const { endsWithUs, holds } = options;
    // In a group of its own: Ctrl-C is for us, and we stop the children in their order.
    this.#process = spawn(options.program, options.args, {
      env: options.env,
      stdio: ["ignore", "pipe", "pipe", endsWithUs ? "ipc" : "ignore", holds ?? "ignore"],
      detached: true,
    });
    // We leave without waiting, on a second Ctrl-C: to a child that is stopping, a second signal means "at once".
    if (endsWithUs) process.once("exit", () => this.#process.kill("SIGTERM"));
    this.#process.on("exit", (code, signal) => {
      if (!this.#stopping) options.onEnd?.(options.name, signal ?? `exit code ${code}`);
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const { exitCode, signalCode, pid } = this.#process;
    if (exitCode === null && signalCode === null && pid !== undefined) {
      const exit = once(this.#process, "exit");
      const timer = setTimeout(() => this.#process.kill("SIGKILL"), stopMs);
      this.#process.kill("SIGTERM");
      await exit;
      clearTimeout(timer);
    }
    this.#log.end();
  }

  /** Settles when it has said that it is ready; throws when it ends before. */
  ready(): Promise<void> {
    const { name, program, readyWord, logFile } = this.#options;
    return new Promise((resolve, reject) => {
      this.#process.once("error", (error: NodeJS.ErrnoException) =>
        reject(
          new Complaint(
            `${name} could not be started: ${error.code === "ENOENT" ? `there is no ${program}` : error.message}`,
            {
              advice: ["npm run setup installs what is missing"],
            },
          ),
        ),
      );
      this.#process.once("exit", (code, signal) =>
        reject(
          new Complaint(`${name} ended at once (${signal ?? `exit code ${code}`})`, {
            advice: [...this.#last, `its log is ${logFile}`],
          }),
        ),
      );
      if (readyWord === undefined) this.#process.once("spawn", resolve);
      const onLine = (line: string) => {
        this.#last = [...this.#last, line].slice(-shownLines);
        if (readyWord === undefined || !line.includes(readyWord)) return;
        this.readyLine = line;
        resolve();
      };
      for (const stream of [this.#process.stdout, this.#process.stderr]) {
        let rest = "";
        stream?.on("data", (chunk: Buffer) => {
          this.#log.write(chunk);
          const lines = (rest + chunk).split("\n");
          rest = lines.pop() ?? "";
          lines.forEach(onLine);
        });
      }
    });
  }
}
