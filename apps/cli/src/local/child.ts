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
  /** A program of ours: it stops by itself when the IPC channel to this process ends. */
  readonly endsWithUs?: boolean;
  /** Held open for as long as it runs. */
  readonly holds?: Writable | undefined;
  /** It is ready when a line of its output has this; at once when absent. */
  readonly readyWord?: string;
  /** It ended without being asked to. */
  readonly onEnd?: (name: string, how: string) => void;
}

/** The grace period of a child that was asked to stop, before it is killed. */
const stopMs = 40_000;
const shownLines = 8;
const lookMs = 25;

/**
 * A program as a process of its own. It writes to its log file itself: a pipe to us would break when we are killed, and
 * pino tries for ever to flush into a broken pipe.
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
    // In a group of its own: Ctrl-C is for us, and we stop the children in their order.
    this.#process = spawn(options.program, options.args, {
      env: options.env,
      stdio: ["ignore", log, log, endsWithUs ? "ipc" : "ignore", holds ?? "ignore"],
      detached: true,
    });
    closeSync(log);
    // `ready` tells of it; without a listener here an error outside of it would end this process.
    this.#process.on("error", () => {});
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
  }

  /** Settles when it has reported readiness; throws when it ends before. */
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
      const [code, signal] = (await Promise.race([ended, this.#says(readyWord, stopped.signal)])) ?? [];
      if (code === undefined) return;
      const last = (await this.#lines()).slice(-shownLines);
      throw new Complaint(`${name} ended at once (${signal ?? `exit code ${code}`})`, {
        advice: [...last, `its log is ${logFile}`],
      });
    } finally {
      stopped.abort();
    }
  }

  async #says(word: string, signal: AbortSignal): Promise<undefined> {
    while (!signal.aborted) {
      const line = (await this.#lines()).find((one) => one.includes(word));
      if (line !== undefined) {
        this.readyLine = line;
        return;
      }
      await sleep(lookMs);
    }
  }

  /** Whole lines of its log. */
  async #lines(): Promise<string[]> {
    return (await readFile(this.#options.logFile, "utf8")).split("\n").slice(0, -1);
  }
}
