import { setImmediate } from "node:timers/promises";
import {
  abortReason,
  BoundedWait,
  capOf,
  type Epoch,
  type ExecRequest,
  type ExecRequestInput,
  type ExecResult,
  execRequest,
  Fault,
  isFault,
  type Outcome,
  problemsOf,
  type SandboxKey,
  tightenLimits,
  type WorkspaceUsage,
} from "@berth/protocol";
import { argvOf, execEnvironment } from "../exec-environment.ts";
import { outcomeOf, type Stop } from "../exec-outcome.ts";
import { endFault } from "../init/connection.ts";
import type { Link, LinkEnd, LinkExit } from "../link.ts";
import { OutputKeeper } from "../output/kept-output.ts";
import type {
  CallOptions,
  ExecOptions,
  Sandbox,
  SandboxFiles,
  SandboxOrigin,
  SandboxStats,
  StartRequest,
} from "../port.ts";
import { type QuotaExceeded, QuotaGuard } from "../quota-guard.ts";
import type { Containers } from "./containers.ts";
import { GuardedFiles } from "./guarded-files.ts";
import type { Started, Starter } from "./starter.ts";
import { unlockWorkspace } from "./workspace.ts";

/** How long after its own limits a command may stay silent before its container is taken for hung. */
const silenceMs = 15_000;
const unkillableMs = 5_000;
/** For one walk of the workspace. A million files take about two seconds. */
const measureDeadlineMs = 5_000;

/**
 * A sandbox in a container of the engine.
 *
 *   running ──container dies, init hangs or lies──▶ broken ──next call──▶ running (a fresh container, same workspace)
 *      │                                              │
 *      ├──stop(), detach()────────────────────────────┴──▶ stopped
 *      └──a higher epoch speaks──▶ fenced
 *
 * Stopped and fenced are final: every later call throws. It never runs a command twice: what was running when the
 * container broke ends as `lost` and is the caller's to repeat.
 */
export class DockerSandbox implements Sandbox {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  readonly files: SandboxFiles;
  readonly #request: StartRequest;
  readonly #starter: Starter;
  readonly #containers: Containers;
  readonly #quota: QuotaGuard;
  readonly #lifetime = new AbortController();
  #started: Started;
  #end: LinkEnd | undefined;
  #reviving: Promise<Link> | undefined;
  #retiring: Promise<void> = Promise.resolve();
  #restarts = 0;
  #stopping: Promise<void> | undefined;

  constructor(request: StartRequest, started: Started, starter: Starter, containers: Containers) {
    this.key = request.key;
    this.epoch = request.epoch;
    this.#request = request;
    this.#starter = starter;
    this.#containers = containers;
    this.#started = started;
    this.#quota = new QuotaGuard(request.profile.limits, {
      alive: () => this.#end === undefined,
      measure: () => this.#measure(),
      onBackgroundGrowth: () => this.#recycle("what a command left in the background fills the workspace"),
      onBlind: () => this.#recycle("the workspace could no longer be measured"),
    });
    this.files = new GuardedFiles(() => this.#link(), this.#quota);
    this.#follow(started);
  }

  get origin(): SandboxOrigin {
    return { ...this.#started.origin, restarts: this.#restarts };
  }

  async exec(input: ExecRequestInput, options: ExecOptions = {}): Promise<ExecResult> {
    const parsed = execRequest.safeParse(input);
    if (!parsed.success) {
      const message = problemsOf(parsed.error).join("; ");
      return unstarted({ kind: "refused", code: "invalid-request", message });
    }
    if (options.signal?.aborted) return unstarted({ kind: "cancelled", reason: abortReason(options.signal) });
    const link = await this.#link(options);
    const full = await this.#full(link, options);
    return this.#run(link, parsed.data, full, options);
  }

  async #full(link: Link, { signal }: ExecOptions): Promise<QuotaExceeded | undefined> {
    try {
      return await abortableWait(this.#quota.full(), signal, "measuring the workspace");
    } catch (error) {
      // On a link that broke meanwhile, the command ends as lost, like one that had begun.
      if (await Promise.race([link.closed.then(() => true), setImmediate(false)])) return undefined;
      throw error;
    }
  }

  async #run(
    link: Link,
    request: ExecRequest,
    full: QuotaExceeded | undefined,
    options: ExecOptions,
  ): Promise<ExecResult> {
    const { profile } = this.#request;
    const limits = tightenLimits(profile.exec, request.limits ?? {});
    const argv = argvOf(request);
    const kept = new OutputKeeper(limits.keptBytes);
    let stop: Stop | undefined;
    let consumerError: { error: unknown } | undefined;
    const stopFor = (why: Stop, graceMs: number) => {
      stop ??= why;
      execution.kill(graceMs);
    };
    const execution = link.exec({
      argv,
      env: execEnvironment(this.#started.imageEnv, profile, request),
      cwd: request.cwd === "" ? profile.workdir : request.cwd,
      stdin:
        options.stdin ?? (typeof request.stdin === "string" ? Buffer.from(request.stdin) : request.stdin),
      limits,
      killBackground: request.background === "kill",
      noGrowth: full !== undefined,
      onStarted: options.onStarted,
      onOutput: (stream, bytes) => {
        kept.add(stream, bytes);
        if (kept.totalBytes > limits.outputBytes) {
          stopFor({ kind: "output-limit", limitBytes: limits.outputBytes }, 0);
          return undefined;
        }
        if (!options.onOutput || consumerError) return undefined;
        try {
          return options.onOutput({ stream, bytes })?.catch(onConsumerError);
        } catch (error) {
          return onConsumerError(error);
        }
      },
    });
    const onConsumerError = (error: unknown): undefined => {
      consumerError ??= { error };
      execution.kill(0);
    };
    const onAbort = () => stopFor({ kind: "cancelled", reason: abortReason(options.signal) }, limits.graceMs);
    options.signal?.addEventListener("abort", onAbort, { once: true });
    const unwatch = this.#quota.watch((exceeded) => stopFor(exceeded, 0));
    // A kill ends what only waits for its consumer; what does not end then either is init's fault.
    let unkillable: NodeJS.Timeout | undefined;
    const onSilence = () => {
      execution.kill(0);
      const giveUp = () => this.#giveUp(link, { why: "unresponsive", waitedMs: silenceMs });
      unkillable = setTimeout(giveUp, unkillableMs);
    };
    const { timeoutMs, graceMs, drainMs } = limits;
    const hung =
      timeoutMs === 0 ? undefined : setTimeout(onSilence, timeoutMs + graceMs + drainMs + silenceMs);
    let background = false;
    try {
      const exit = await execution.end;
      background = exit.kind !== "broken" && exit.kind !== "refused" && exit.background > 0;
      if (consumerError) throw consumerError.error;
      return {
        ...measures(exit),
        outcome:
          exit.kind === "broken"
            ? await this.#brokenOutcome(exit.end)
            : outcomeOf(exit, stop, {
                limits: profile.limits,
                timeoutMs: limits.timeoutMs,
                program: argv[0] ?? "",
                full,
              }),
        output: kept.finish(),
      };
    } finally {
      clearTimeout(hung);
      clearTimeout(unkillable);
      unwatch({ background });
      options.signal?.removeEventListener("abort", onAbort);
    }
  }

  get isReady(): boolean {
    return this.#end === undefined && !this.#lifetime.signal.aborted;
  }

  async ready(options: CallOptions = {}): Promise<void> {
    await this.#link(options);
  }

  async usage(options: CallOptions = {}): Promise<WorkspaceUsage> {
    return (await this.#link(options)).usage({ ...options, maxEntries: this.#maxEntries });
  }

  async stats(options: CallOptions = {}): Promise<SandboxStats> {
    return (await this.#link(options)).stats(options);
  }

  stop(options: CallOptions = {}): Promise<void> {
    this.#stopping ??= this.#stop(options);
    return this.#stopping;
  }

  async #stop(options: CallOptions): Promise<void> {
    this.#lifetime.abort(new Fault("sandbox-stopped", { sandboxKey: this.key }));
    this.#quota.stop();
    await this.#reviving?.catch(() => {});
    this.#started.link.close();
    await this.#retiring;
    // A fenced holder must not touch what belongs to a later epoch.
    if (this.#end?.why !== "fenced") await this.#containers.remove(this.#started.containerId, options);
  }

  detach(): void {
    if (this.#stopping !== undefined) return;
    this.#stopping = Promise.resolve();
    this.#lifetime.abort(new Fault("sandbox-stopped", { sandboxKey: this.key }));
    this.#quota.stop();
    this.#started.link.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** The link to a living container; a dead one is replaced first. */
  async #link(options: CallOptions = {}): Promise<Link> {
    this.#lifetime.signal.throwIfAborted();
    if (this.#end === undefined) return this.#started.link;
    if (this.#end.why === "fenced") throw endFault(this.#end, { sandboxKey: this.key, epoch: this.epoch });
    this.#reviving ??= this.#revive().finally(() => {
      this.#reviving = undefined;
    });
    return abortableWait(this.#reviving, options.signal, "start");
  }

  /** Of a walk: one more than there may be. */
  get #maxEntries(): number {
    return Math.min(capOf(this.#request.profile.limits.workspaceEntries) + 1, Number.MAX_SAFE_INTEGER);
  }

  async #measure(): Promise<WorkspaceUsage> {
    const maxEntries = this.#maxEntries;
    using wait = new BoundedWait().endWith(this.#lifetime.signal).endAfter(measureDeadlineMs);
    const { signal } = wait;
    const measured = async () => (await this.#link()).usage({ maxEntries, signal });
    try {
      return await measured().catch(async (error: unknown) => {
        const wasLocked = await unlockWorkspace(this.#started.workspacePath).catch(() => false);
        if (!wasLocked) throw error;
        return measured();
      });
    } catch (error) {
      if (!wait.isLate || this.#lifetime.signal.aborted) throw error;
      const context = { operation: "measuring the workspace", deadlineMs: measureDeadlineMs };
      throw new Fault("operation-timeout", context, { cause: error });
    }
  }

  async #revive(): Promise<Link> {
    await this.#retiring;
    const started = await this.#starter.start(this.#request, { signal: this.#lifetime.signal });
    this.#restarts++;
    this.#started = started;
    this.#end = undefined;
    this.#quota.restarted();
    this.#follow(started);
    return started.link;
  }

  #follow(started: Started): void {
    void started.link.closed.then((end) => {
      if (this.#started === started) this.#broke(started, end);
    });
  }

  #broke(started: Started, end: LinkEnd): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    // A container that hangs or lies must not go on running; one that died is looked at first, for its last words.
    if (end.why === "protocol" || end.why === "unresponsive" || end.why === "recycled") {
      this.#retiring = this.#containers.remove(started.containerId, {}).catch(() => {});
    }
  }

  /** Ends everything in the container; the next call starts a fresh one. */
  #recycle(detail: string): void {
    this.#giveUp(this.#started.link, { why: "recycled", detail });
  }

  #giveUp(link: Link, end: LinkEnd): void {
    if (this.#started.link === link) this.#broke(this.#started, end);
    link.close();
  }

  async #brokenOutcome(end: LinkEnd): Promise<Outcome> {
    if (end.why === "fenced") throw endFault(end, { sandboxKey: this.key, epoch: this.epoch });
    if (end.why === "closed" && this.#lifetime.signal.aborted) {
      return { kind: "cancelled", reason: "the sandbox was stopped" };
    }
    if (this.#end?.why === "recycled") {
      return { kind: "lost", message: `everything in the sandbox was ended: ${this.#end.detail}` };
    }
    if (end.why === "stream-ended") {
      const found = await this.#containers.find(this.#started.containerId, {}).catch(() => undefined);
      if (found?.oomKilled)
        return { kind: "out-of-memory", limitBytes: this.#request.profile.limits.memoryBytes };
    }
    const cause = endFault(end, { sandboxKey: this.key, epoch: this.epoch });
    const why = isFault(cause, "sandbox-start-failed") ? "its container died" : cause.message;
    return {
      kind: "lost",
      message: `the sandbox was lost while the command ran (${why}); it may have run in part`,
    };
  }
}

function unstarted(outcome: Outcome): ExecResult {
  return { outcome, output: new OutputKeeper(0).finish(), ...measures(undefined) };
}

function measures(exit: LinkExit | undefined): Omit<ExecResult, "outcome" | "output"> {
  if (exit === undefined || exit.kind === "broken" || exit.kind === "refused") {
    return { wallMs: 0, cpuMs: 0, maxRssBytes: 0, oomKills: 0, backgroundProcesses: 0 };
  }
  const { wallMs, cpuMs, maxRssBytes, oomKills, background } = exit;
  return { wallMs, cpuMs, maxRssBytes, oomKills, backgroundProcesses: background };
}

async function abortableWait<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  operation: string,
): Promise<T> {
  if (!signal) return promise;
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new Fault("aborted", { operation }, { cause: signal.reason }));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
