import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Complaint } from "../complaint.ts";

export interface ChildOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** A program of ours, which stops when its IPC channel to this process closes. */
  readonly endsWithUs?: boolean;
  /** File descriptors that stay open while it runs. */
  readonly holds?: Writable | undefined;
  /** Text in a line of output that means "ready"; absent: ready at once. */
  readonly readyWord?: string;
  /** Called when it exits without being asked to. */
  readonly onEnd?: (name: string, how: string) => void;
}

/** Grace period between the request to stop and the kill. */
const stopMs = 40_000;
const shownLines = 8;
const lookMs = 25;

/**
 * Runs a program as its own process. The program writes its log file itself: a pipe would break when this process is killed, and
 * pino would try forever to flush into it.
 */
export class LocalChild {
  /** The output line that reported readiness. */
  readyLine = "";
  readonly #options: ChildOptions;
  readonly #process: ChildProcess;
  #stopping = false;

  constructor(options: ChildOptions) {
    this.#options = options;
    const log = openSync(options.logFile, "w");
    const { endsWithUs, holds } = options;
    // Its own process group: Ctrl-C reaches only us, and we stop the children in order.
    this.#process = spawn(options.program, options.args, {
      env: options.env,
      stdio: ["ignore", log, log, endsWithUs ? "ipc" : "ignore", holds ?? "ignore"],
      detached: true,
    });
    closeSync(log);
    // `ready` reports an early error; without a listener, a late one would crash this process.
    this.#process.on("error", () => {});
    // On a second Ctrl-C we exit without waiting. A stopping child takes the second signal as "at once".
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
  }

  /** Resolves when the child reports readiness; throws when it exits before. */
  async ready(): Promise<void> {
    const { name, program, readyWord, logFile } = this.#options;
    const stopped = new AbortController();
    const spawned = once(this.#process, "spawn", { signal: stopped.signal });
    const ended = once(this.#process, "exit", { signal: stopped.signal });
    spawned.catch(() => {});
    ended.catch(() => {});
    try {
      await spawned.catch((error: NodeJS.ErrnoException) => {
        const why = error.code === "ENOENT" ? `there is no ${program}` : error.message;
        throw new Complaint(`${name} could not be started: ${why}`, {
          advice: ["npm run setup installs what is missing"],
        });
      });
      if (readyWord === undefined) return;
      const [code, signal] =
        (await Promise.race([ended, this.#waitForLine(readyWord, stopped.signal)])) ?? [];
      if (code === undefined) return;
      const last = (await this.#lines()).slice(-shownLines);
      throw new Complaint(`${name} ended at once (${signal ?? `exit code ${code}`})`, {
        advice: [...last, `its log is ${logFile}`],
      });
    } finally {
      stopped.abort();
    }
  }

  async #waitForLine(word: string, signal: AbortSignal): Promise<undefined> {
    while (!signal.aborted) {
      const line = (await this.#lines()).find((one) => one.includes(word));
      if (line !== undefined) {
        this.readyLine = line;
        return;
      }
      await sleep(lookMs);
    }
  }

  /** Complete lines of its log. */
  async #lines(): Promise<string[]> {
    return (await readFile(this.#options.logFile, "utf8")).split("\n").slice(0, -1);
  }
}
