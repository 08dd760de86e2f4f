import { setImmediate } from "node:timers/promises";
import {
  abortReason,
  agentDirectory,
  BoundedWait,
  capOf,
  type Epoch,
  type ExecLimits,
  type ExecRequest,
  type ExecRequestInput,
  type ExecResult,
  execRequest,
  Fault,
  type Outcome,
  type OutputStream,
  problemsOf,
  type SandboxKey,
  type SandboxProfile,
  type SetUpReport,
  setUpOutputBytes,
  sharedOwner,
  tenantOf,
  tightenLimits,
  toolsDirectory,
  type WorkspaceUsage,
} from "@berth/protocol";
import { argvOf, execEnvironment, type Locale } from "../exec-environment.ts";
import { measuresOf, unstarted } from "../exec-measures.ts";
import { outcomeOf, type Stop } from "../exec-outcome.ts";
import { endFault } from "../init/connection.ts";
import type { Link, LinkEnd } from "../link.ts";
import { FilteredOutput } from "../output/filtered-output.ts";
import { HeadTailBuffer } from "../output/head-tail-buffer.ts";
import type {
  CallOptions,
  ExecOptions,
  Sandbox,
  SandboxFiles,
  SandboxOrigin,
  SandboxStats,
  SharedPath,
  StartRequest,
} from "../port.ts";
import { type QuotaExceeded, QuotaGuard, type QuotaHooks } from "../quota-guard.ts";
import { abortableWait } from "./abortable-wait.ts";
import type { Containers } from "./containers.ts";
import type { DiskFloor } from "./disk-floor.ts";
import { GuardedFiles } from "./guarded-files.ts";
import { lostOutcome } from "./lost-outcome.ts";
import { countedUsage, heldBy } from "./quota/workspace-quotas.ts";
import { checkedSetUp, rememberedSetUp, rememberSetUp, setsUpApart } from "./set-up.ts";
import type { Started, Starter } from "./starter.ts";
import { unlockWorkspace } from "./workspace.ts";

/** How long after its own limits a command may stay silent before its container is taken for hung. */
const silenceMs = 15_000;
const unkillableMs = 5_000;
/** For one walk of the workspace. A million files take about two seconds. */
const measureDeadlineMs = 5_000;

export interface SandboxParts {
  readonly request: StartRequest;
  readonly starter: Starter;
  readonly containers: Containers;
  readonly floor: Pick<DiskFloor, "low">;
  /** The worker's own. */
  readonly locale: Locale | undefined;
}

/** What bounds one command. */
interface Bounds {
  readonly full: QuotaExceeded | undefined;
  readonly limits: ExecLimits;
  readonly keptOutput: SandboxProfile["keptOutput"];
}

/** A container, and how its set-up ended if that had one of its own. */
interface Prepared {
  readonly started: Started;
  readonly apart: SetUpReport | undefined;
}

/**
 * A sandbox in a container of the engine.
 *
 *   running ──container dies, init hangs or lies──▶ broken ──next call──▶ running (a fresh container, same workspace)
 *      │                                              │
 *      ├──stop(), detach(), park()────────────────────┴──▶ stopped
 *      └──a higher epoch speaks──▶ fenced
 *
 * Stopped and fenced are final: every later call throws. It never runs a command twice: what was running when the
 * container broke ends as `lost` and is the caller's to repeat.
 */
export class DockerSandbox implements Sandbox {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  readonly files: SandboxFiles;
  readonly #parts: SandboxParts;
  readonly #quota: QuotaGuard;
  readonly #lifetime = new AbortController();
  readonly #sharedBytes = new Map<SharedPath, number>();
  /** The whole was measured since. */
  #isSharedStale = false;
  #started: Started;
  #setUpReport: SetUpReport | undefined;
  #end: LinkEnd | undefined;
  #reviving: Promise<Link> | undefined;
  #retiring: Promise<void> = Promise.resolve();
  #restarts = 0;
  #stopping: Promise<void> | undefined;

  private constructor(parts: SandboxParts, started: Started) {
    const { request } = parts;
    this.key = request.key;
    this.epoch = request.epoch;
    this.#parts = parts;
    this.#started = started;
    const { limits, quotaFor } = request.profile;
    const hooks: QuotaHooks = {
      low: () => parts.floor.low(),
      alive: () => this.#end === undefined,
      measure: () => this.#measure(),
      disk: () => heldBy(this.#started.workspacePath),
      isCounted: () => this.#isCounted,
      onBackgroundGrowth: () => this.#recycle("what a command left in the background fills the workspace"),
      onBlind: () => this.#recycle("the workspace could no longer be measured"),
    };
    this.#quota = new QuotaGuard(limits, hooks, quotaFor);
    this.files = new GuardedFiles(() => this.#link(), this.#quota);
    this.#follow(started);
  }

  /** Adopts or starts its container, and sets it up. */
  static async open(parts: SandboxParts, call: CallOptions): Promise<DockerSandbox> {
    const { started, apart } = await DockerSandbox.#prepare(parts, call);
    const sandbox = new DockerSandbox(parts, started);
    try {
      await sandbox.#setUp(apart, call);
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
  }

  static async #prepare(parts: SandboxParts, call: CallOptions): Promise<Prepared> {
    let apart: SetUpReport | undefined;
    const beforeFresh = async () => {
      apart = await DockerSandbox.#setUpApart(parts, call);
    };
    return { started: await parts.starter.start(parts.request, { ...call, beforeFresh }), apart };
  }

  static async #setUpApart(parts: SandboxParts, call: CallOptions): Promise<SetUpReport | undefined> {
    const { profile } = parts.request;
    if (!setsUpApart(profile)) return undefined;
    const network = profile.setup.network ?? profile.network;
    const request = { ...parts.request, profile: { ...profile, network } };
    const apart = { ...parts, request };
    await using sandbox = new DockerSandbox(apart, await parts.starter.start(request, call));
    return await sandbox.#runSetUp(call);
  }

  get origin(): SandboxOrigin {
    const { origin } = this.#started;
    return { ...origin, restarts: this.#restarts, setUp: this.#setUpReport };
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
    const limits = tightenLimits(this.#profile.exec, parsed.data.limits ?? {});
    const { keptOutput } = this.#profile;
    return this.#run(link, parsed.data, { full, limits, keptOutput }, options);
  }

  get lastBytes(): number | undefined {
    return this.#quota.lastBytes;
  }

  get lastShared(): ReadonlyMap<SharedPath, number> {
    // Beside the quota's own looks, which a second walk would make later.
    if (this.#isSharedStale) this.measureShared({ signal: this.#lifetime.signal }).catch(() => {});
    return this.#sharedBytes;
  }

  async measureShared({ signal }: CallOptions = {}): Promise<void> {
    this.#isSharedStale = false;
    if (this.#end !== undefined) return;
    const { link } = this.#started;
    for (const path of this.#sharedPaths) {
      const { bytes } = await link.usage({ path, maxEntries: this.#maxEntries, signal });
      this.#sharedBytes.set(path, bytes);
    }
  }

  /** Those that it may write: one that is read-only cannot grow by it. */
  get #sharedPaths(): readonly SharedPath[] {
    const { agentAccess, toolsAccess } = this.#profile;
    const isShared = tenantOf(this.key) === sharedOwner;
    return [
      ...(agentAccess === "rw" && !isShared ? ([agentDirectory] as const) : []),
      ...(toolsAccess === "rw" && !isShared ? ([toolsDirectory] as const) : []),
    ];
  }

  get #profile(): SandboxProfile {
    return this.#parts.request.profile;
  }

  /** Once in each container: a worker that finds it done skips it. */
  async #setUp(apart: SetUpReport | undefined, call: CallOptions): Promise<void> {
    if (this.#profile.setup.command === "") return;
    const { setUpPath, containerId, origin, rootSetUp } = this.#started;
    if (rootSetUp) {
      this.#setUpReport = rootSetUp;
      return;
    }
    this.#setUpReport = apart ?? (await rememberedSetUp(setUpPath, containerId));
    if (this.#setUpReport && !apart) return;
    // One that was adopted is there only since its set-up, apart, went well.
    if (origin.how === "adopted" && setsUpApart(this.#profile)) return;
    this.#setUpReport ??= await this.#runSetUp(call);
    await rememberSetUp(setUpPath, containerId, this.#setUpReport);
  }

  async #runSetUp(call: CallOptions): Promise<SetUpReport> {
    const { command, timeoutMs } = this.#profile.setup;
    const request = execRequest.parse({ command, background: "kill" });
    const full = await this.#full(this.#started.link, call);
    const limits = { ...this.#profile.exec, timeoutMs, keptBytes: setUpOutputBytes };
    const { outputFilter } = this.#parts.request;
    const options = outputFilter ? { ...call, filter: outputFilter() } : call;
    const bounds = { full, limits, keptOutput: "ends" as const };
    const result = await this.#run(this.#started.link, request, bounds, options);
    if (call.signal?.aborted)
      throw new Fault("aborted", { operation: "set-up" }, { cause: call.signal.reason });
    return checkedSetUp(this.key, result);
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
    { full, limits, keptOutput }: Bounds,
    options: ExecOptions,
  ): Promise<ExecResult> {
    const profile = this.#profile;
    const argv = argvOf(request);
    const kept = new HeadTailBuffer(limits.keptBytes, keptOutput);
    let stop: Stop | undefined;
    let consumerError: { error: unknown } | undefined;
    const stopFor = (why: Stop, graceMs: number) => {
      stop ??= why;
      execution.kill(graceMs);
    };
    const take = (stream: OutputStream, bytes: Buffer): void | Promise<void> => {
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
    };
    const filtered = options.filter && new FilteredOutput(options.filter, take);
    const execution = link.exec({
      argv,
      env: execEnvironment(this.#started.imageEnv, {
        locale: this.#parts.locale,
        profile,
        given: options.env,
        request,
      }),
      cwd: request.cwd === "" ? profile.workdir : request.cwd,
      stdin:
        options.stdin ?? (typeof request.stdin === "string" ? Buffer.from(request.stdin) : request.stdin),
      limits,
      killBackground: request.background === "kill",
      noGrowth: full !== undefined,
      onStarted: options.onStarted,
      onOutput: filtered ? (stream, bytes) => filtered.push(stream, bytes) : take,
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
      await filtered?.end();
      background = exit.kind !== "broken" && exit.kind !== "refused" && exit.background > 0;
      if (consumerError) throw consumerError.error;
      return {
        ...measuresOf(exit),
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
      filtered?.stop();
      clearTimeout(hung);
      clearTimeout(unkillable);
      unwatch({ background });
      options.signal?.removeEventListener("abort", onAbort);
    }
  }

  get isReady(): boolean {
    return this.#end === undefined && this.#reviving === undefined && !this.#lifetime.signal.aborted;
  }

  async ready(options: CallOptions = {}): Promise<void> {
    await this.#link(options);
  }

  async usage(options: CallOptions = {}): Promise<WorkspaceUsage> {
    const link = await this.#link(options);
    return this.#counted() ?? link.usage({ ...options, maxEntries: this.#maxEntries });
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
    if (this.#end?.why !== "fenced")
      await this.#parts.starter.discard(this.#parts.request, this.#started, options);
  }

  async park(): Promise<boolean> {
    if (this.#stopping !== undefined || !this.isReady) {
      await this.stop();
      return false;
    }
    this.#lifetime.abort(new Fault("sandbox-stopped", { sandboxKey: this.key }));
    this.#quota.stop();
    const parking = this.#parts.starter.park(this.#parts.request, this.#started);
    this.#stopping = parking.then((parked) => (parked ? undefined : this.#stop({})));
    await this.#stopping;
    return parking;
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
    if (this.#end === undefined && this.#reviving === undefined) return this.#started.link;
    if (this.#end?.why === "fenced") throw endFault(this.#end, { sandboxKey: this.key, epoch: this.epoch });
    this.#reviving ??= this.#revive().finally(() => {
      this.#reviving = undefined;
    });
    return abortableWait(this.#reviving, options.signal, "start");
  }

  /** Of a walk: one more than there may be. */
  get #maxEntries(): number {
    return Math.min(capOf(this.#profile.limits.workspaceEntries) + 1, Number.MAX_SAFE_INTEGER);
  }

  /** The file system counts files, too. What lies in directories that it shares is only counted by a walk. */
  get #isCounted(): boolean {
    const { quota } = this.#started.origin;
    const { agentAccess, toolsAccess } = this.#profile;
    return (quota === "project" || quota === "image") && agentAccess !== "rw" && toolsAccess !== "rw";
  }

  #counted(): Promise<WorkspaceUsage> | undefined {
    const { origin, workspacePath } = this.#started;
    return this.#isCounted ? countedUsage(workspacePath, origin.quota === "image") : undefined;
  }

  async #measure(): Promise<WorkspaceUsage> {
    const counted = this.#counted();
    if (counted !== undefined) return counted;
    const maxEntries = this.#maxEntries;
    using wait = new BoundedWait().endWith(this.#lifetime.signal).endAfter(measureDeadlineMs);
    const { signal } = wait;
    // Also while its container is being set up, when `#link` would wait for that.
    const link = async () => (this.#end === undefined ? this.#started.link : await this.#link());
    const measured = async () => {
      const usage = await (await link()).usage({ maxEntries, signal });
      this.#isSharedStale = true;
      return usage;
    };
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
    const call = { signal: this.#lifetime.signal };
    const { started, apart } = await DockerSandbox.#prepare(this.#parts, call);
    this.#restarts++;
    this.#started = started;
    this.#end = undefined;
    this.#quota.restarted();
    this.#follow(started);
    try {
      await this.#setUp(apart, call);
    } catch (error) {
      this.#recycle("its set-up command failed");
      throw error;
    }
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
      this.#retiring = this.#parts.containers.remove(started.containerId, {}).catch(() => {});
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
    const { request, containers } = this.#parts;
    if (end.why === "closed" && this.#lifetime.signal.aborted)
      return { kind: "cancelled", reason: "the sandbox was stopped" };
    const recycled = this.#end?.why === "recycled" ? this.#end.detail : undefined;
    return await lostOutcome(end, { request, containers, recycled, containerId: this.#started.containerId });
  }
}
