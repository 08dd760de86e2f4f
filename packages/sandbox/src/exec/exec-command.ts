import { setTimeout as sleep } from "node:timers/promises";
import { type FileRefusalCode, fileRefusals, pathProblem, withoutWorkspacePrefix } from "@berth/protocol";
import type { LinkCommand, LinkEnd, LinkExecution, LinkExit } from "../link.ts";
import { refusalText } from "../refusal-text.ts";
import { CommandOutput } from "./command-output.ts";
import { commandScript, indirection } from "./command-scripts.ts";
import { killBackgroundOf, leftAfterSweep, oomKillsSince } from "./exec-ending.ts";
import { blindEnd, type ExecHost, type Guest, type OpenExec } from "./exec-host.ts";
import type { StreamListener } from "./exec-stream.ts";
import { signalSession } from "./script-run.ts";
import { startProblem } from "./start-problem.ts";

/** Between two looks at whether the command still runs. The stream's end, which is the usual sign, is noticed at once. */
const firstLookMs = 150;
const lookMs = 1_000;
const urgentLookMs = 25;
/** However chatty a background child is; time in which the reader was busy does not count. */
const longestDrainMs = 2_500;
/** Of an engine that does not answer, after the connection has ended. */
const failedLooksAllowed = 5;
/** For the command's process id, when it is to be killed before it told. */
const pidWaitMs = 2_000;
/** For the engine to notice the end of what was killed. */
const killedWaitMs = 3_000;

/** For the engine to tell that a container died whose commands it already reported as dead. */
const deathNewsMs = 1_000;
const sigkill = 9;

type Reason = Extract<LinkExit, { reason: unknown }>["reason"];

/**
 * One command through the engine's exec.
 *
 *   opening ──▶ running ──leader ends──▶ draining ──▶ ended
 *                  └──timeout, kill()──▶ stopping: TERM, grace, KILL of its session
 *                                           ├──nothing unknown is left──▶ draining
 *                                           └──anything else──▶ the container restarts ──▶ ended
 */
export class ExecCommand implements LinkExecution, Guest, StreamListener {
  readonly end: Promise<LinkExit>;
  readonly #host: ExecHost;
  readonly #command: LinkCommand;
  readonly #output: CommandOutput;
  readonly #settled = Promise.withResolvers<LinkExit>();
  readonly #pidKnown = Promise.withResolvers<void>();
  readonly #leaderEnded = Promise.withResolvers<void>();
  #hasLeaderEnded = false;
  #hasEnded = false;
  #reason: Reason = "itself";
  #stopping: Promise<void> | undefined;
  #hurry = Promise.withResolvers<void>();
  #graceEndsMs = Number.POSITIVE_INFINITY;
  #generation = 0;
  #beganMs = performance.now();
  #endedMs = 0;

  constructor(host: ExecHost, command: LinkCommand) {
    this.#host = host;
    this.#command = command;
    this.end = this.#settled.promise;
    this.#output = new CommandOutput(command, (pid) => {
      this.#beganMs = performance.now();
      command.onStarted?.({ pid });
    });
    void this.#run().then(
      (exit) => this.#settle(exit),
      (error: unknown) => this.#settle({ kind: "broken", end: host.end ?? blindEnd(error) }),
    );
  }

  get pid(): number | undefined {
    return this.#output.head.pid;
  }

  kill(graceMs: number): void {
    this.#stop("kill", graceMs);
  }

  onRestarting(): void {
    if (!this.#hasLeaderEnded && this.#reason === "itself") this.#reason = "collateral";
  }

  onRestarted(): void {
    if (this.#reason !== "itself") this.#settle(this.#exit("signalled", sigkill, 0));
  }

  onClosed(end: LinkEnd): void {
    this.#settle({ kind: "broken", end });
  }

  onBytes(stream: "stdout" | "stderr", bytes: Buffer): void | Promise<void> {
    const pending = this.#output.take(stream, bytes);
    if (this.pid !== undefined) this.#pidKnown.resolve();
    return pending;
  }

  /** The consumer of output threw: nobody wants the rest. */
  onError(): void {
    this.kill(0);
  }

  async #run(): Promise<LinkExit> {
    const { cwd, limits, stdin } = this.#command;
    const problem = pathProblem(cwd);
    if (problem) return { kind: "refused", code: "invalid-path", message: `invalid path: ${problem}` };
    let opened: OpenExec;
    try {
      opened = await this.#host.open({ argv: this.#argv(), stdin: stdin !== undefined }, this, this);
    } catch (error) {
      // Whether it began is unknown, and nobody would see what it does.
      this.#host.close(blindEnd(error));
      throw error;
    }
    this.#generation = this.#host.generation;
    const { stream } = opened;
    const timer = setTimeout(() => this.#stop("timeout", limits.graceMs), limits.timeoutMs);
    void this.end.then(() => {
      clearTimeout(timer);
      stream.cut();
    });
    if (stdin !== undefined) stream.feed(stdin).catch(() => this.kill(limits.graceMs));
    const code = await this.#leaderEnd(opened);
    this.#hasLeaderEnded = true;
    this.#endedMs = performance.now();
    this.#leaderEnded.resolve();
    // A restart or the host's end has told how it ended.
    if (this.#hasEnded) return this.end;
    // A restart may wait for this very command's end before it tells why.
    await this.#stopping;
    await this.#drain(opened);
    stream.cut();
    await stream.ended;
    return this.#conclude(code);
  }

  /** Everything from outside is an element of this array; the shell's script is constant. */
  #argv(): string[] {
    const { argv, env, cwd, noGrowth } = this.#command;
    const program = argv[0] ?? "";
    const mistakable = program.includes("=") || program === "-";
    const dir = withoutWorkspacePrefix(cwd);
    return [
      ...["sh", "-c", commandScript, "sh", dir, env.PATH ?? defaultPath, program, noGrowth ? "1" : "0"],
      ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...(mistakable ? indirection : []),
      ...argv,
    ];
  }

  async #leaderEnd({ stream, exitCode }: OpenExec): Promise<number | "gone"> {
    let failures = 0;
    for (let waitMs = firstLookMs; ; waitMs = Math.min(waitMs * 1.5, lookMs)) {
      const urgent = stream.isEnded || this.#stopping !== undefined;
      if (!stream.isEnded) {
        await wait(
          urgent ? urgentLookMs : stream.isPaused ? Math.min(waitMs, lookMs / 2) : waitMs,
          stream.ended,
        );
      }
      if (this.#hasEnded) return "gone";
      try {
        const code = await exitCode();
        if (code !== undefined) return code;
        failures = 0;
      } catch (error) {
        failures++;
        if (stream.isEnded && failures >= failedLooksAllowed) {
          this.#host.close(blindEnd(error));
          throw error;
        }
      }
      // A command may close both outputs and go on.
      if (stream.isEnded) await sleep(Math.min(waitMs, lookMs) / 4);
    }
  }

  /** A background child may hold the outputs open; it is waited for only while it is quiet and briefly. */
  async #drain({ stream }: OpenExec): Promise<void> {
    const { drainMs } = this.#command.limits;
    const longestMs = Math.max(longestDrainMs, drainMs);
    const beganMs = performance.now() - stream.pausedMs;
    while (!stream.isEnded && !this.#hasEnded) {
      const readyMs = performance.now() - stream.pausedMs - beganMs;
      if (!stream.isPaused && (stream.quietMs >= drainMs || readyMs >= longestMs)) return;
      await wait(Math.max(5, stream.isPaused ? urgentLookMs : drainMs - stream.quietMs), stream.ended);
    }
  }

  async #conclude(code: number | "gone"): Promise<LinkExit> {
    if (code === "gone") {
      // A restart tells the rest.
      if (this.#reason !== "itself" && (await this.#host.look())) return this.#exit("signalled", sigkill, 0);
      return this.#broken("the engine no longer knows the command");
    }
    const answer = this.#output.head.finish();
    if (answer.kind === "no") return this.#refused(answer.code);
    let oomKills = 0;
    if (code === 128 + sigkill && this.#reason === "itself") {
      // It is also how the engine reports every exec of a container that died, sometimes before it reports the container.
      const counted = await oomKillsSince(this.#host);
      if (counted === undefined && !(await this.#isHostAlive())) return this.#broken("the container ended");
      oomKills = counted ?? 0;
    }
    if (answer.kind === "garbled" && this.#reason === "itself") {
      const text = this.#output.complaint();
      return { kind: "refused", code: startProblem(text), message: text };
    }
    if (this.#command.killBackground && this.pid !== undefined && this.#stopping === undefined) {
      await killBackgroundOf(this.#host, this.pid, this.#generation);
    }
    const signal = code - 128;
    return signal >= 1 && signal <= 31
      ? this.#exit("signalled", signal, oomKills)
      : this.#exit("exited", code, oomKills);
  }

  async #isHostAlive(): Promise<boolean> {
    for (
      const beganMs = performance.now();
      performance.now() - beganMs < deathNewsMs;
      await sleep(urgentLookMs)
    ) {
      if (!(await this.#host.look())) return false;
    }
    return true;
  }

  #broken(detail: string): LinkExit {
    const end: LinkEnd = this.#host.end ?? { why: "stream-ended", detail };
    this.#host.close(end);
    return { kind: "broken", end };
  }

  #refused(code: string): LinkExit {
    const { argv, cwd } = this.#command;
    const known = fileRefusals.find((refusal): refusal is FileRefusalCode => refusal === code);
    return { kind: "refused", code, message: known ? refusalText(known, cwd, "") : (argv[0] ?? "") };
  }

  #exit(kind: "exited" | "signalled", value: number, oomKills: number): LinkExit {
    const wallMs = Math.max(0, (this.#endedMs || performance.now()) - this.#beganMs);
    return {
      kind,
      value,
      reason: this.#reason,
      oomKills,
      wallMs,
      cpuMs: 0,
      maxRssBytes: 0,
      background: 0,
      stuck: 0,
    };
  }

  #stop(reason: "timeout" | "kill", graceMs: number): void {
    if (this.#hasEnded || this.#hasLeaderEnded) return;
    const graceEndsMs = performance.now() + graceMs;
    if (graceEndsMs < this.#graceEndsMs) {
      this.#graceEndsMs = graceEndsMs;
      this.#hurry.resolve();
      this.#hurry = Promise.withResolvers();
    }
    if (this.#stopping !== undefined) return;
    if (this.#reason === "itself") this.#reason = reason;
    this.#stopping = this.#endTree().catch(() => (this.#hasEnded ? undefined : this.#host.restart()));
  }

  async #endTree(): Promise<void> {
    await wait(pidWaitMs, this.#pidKnown.promise, this.#leaderEnded.promise);
    const { pid } = this;
    if (pid === undefined) return this.#host.restart();
    if (this.#graceEndsMs > performance.now()) {
      await signalSession(this.#host, "TERM", pid, this.#generation);
      for (
        let leftMs = this.#graceLeftMs();
        leftMs > 0 && !this.#hasLeaderEnded;
        leftMs = this.#graceLeftMs()
      ) {
        await wait(leftMs, this.#leaderEnded.promise, this.#hurry.promise);
      }
    }
    if ((await leftAfterSweep(this.#host, pid, this.#generation)) > 0) return this.#host.restart();
    await wait(killedWaitMs, this.#leaderEnded.promise);
    if (!this.#hasLeaderEnded) await this.#host.restart();
  }

  #graceLeftMs(): number {
    return this.#graceEndsMs - performance.now();
  }

  #settle(exit: LinkExit): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#host.leave(this);
    this.#settled.resolve(exit);
  }
}

/** The one init uses when the environment has none. */
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

async function wait(ms: number, ...signs: readonly Promise<void>[]): Promise<void> {
  const timer = new AbortController();
  try {
    await Promise.race([sleep(ms, undefined, { signal: timer.signal }), ...signs]);
  } finally {
    timer.abort();
  }
}
