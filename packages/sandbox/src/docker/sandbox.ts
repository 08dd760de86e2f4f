import { setImmediate } from "node:timers/promises";
import {
  abortReason,
  type Epoch,
  type ExecRequestInput,
  type ExecResult,
  execRequest,
  Fault,
  type Outcome,
  problemsOf,
  type SandboxKey,
  type SandboxProfile,
  type SetUpReport,
  setUpOutputBytes,
  tightenLimits,
  type WorkspaceUsage,
} from "@berth/protocol";
import type { Locale } from "../exec-environment.ts";
import { unstarted } from "../exec-measures.ts";
import { endFault } from "../init/connection.ts";
import type { Link, LinkEnd } from "../link.ts";
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
import { type QuotaExceeded, QuotaGuard } from "../quota-guard.ts";
import { abortableWait } from "./abortable-wait.ts";
import { type CommandRun, runCommand } from "./command-run.ts";
import type { Containers } from "./containers.ts";
import type { DiskFloor } from "./disk-floor.ts";
import { GuardedFiles } from "./guarded-files.ts";
import { lostOutcome } from "./lost-outcome.ts";
import { heldBy } from "./quota/workspace-quotas.ts";
import { SandboxUsage } from "./sandbox-usage.ts";
import { checkedSetUp, rememberedSetUp, rememberSetUp, setsUpApart } from "./set-up.ts";
import type { Started } from "./started.ts";
import type { Starter } from "./starter.ts";

export interface SandboxParts {
  readonly request: StartRequest;
  readonly starter: Pick<Starter, "start" | "park" | "discard">;
  readonly containers: Pick<Containers, "find" | "remove">;
  readonly floor: Pick<DiskFloor, "low">;
  /** The worker's own. */
  readonly locale: Locale | undefined;
}

/** A container, and the report of a set-up that ran in a container of its own. */
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
 *      └──init obeys a higher epoch──▶ fenced
 *
 * Stopped and fenced are final: every later call throws. It never runs a command twice: commands that ran when the container broke
 * end as `lost`, and the caller decides whether to repeat them.
 */
export class DockerSandbox implements Sandbox {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  readonly files: SandboxFiles;
  readonly #parts: SandboxParts;
  readonly #quota: QuotaGuard;
  readonly #usage: SandboxUsage;
  readonly #lifetime = new AbortController();
  /** How each container's link ended. A command that ended late is judged by its own container, not by the one that replaced it. */
  readonly #ends = new WeakMap<Started, LinkEnd>();
  #started: Started;
  #setUpReport: SetUpReport | undefined;
  #reviving: Promise<Started> | undefined;
  #retiring: Promise<void> = Promise.resolve();
  #restarts = 0;
  #stopping: Promise<void> | undefined;
  #parking: Promise<boolean> | undefined;

  private constructor(parts: SandboxParts, started: Started) {
    const { key, epoch, profile } = parts.request;
    this.key = key;
    this.epoch = epoch;
    this.#parts = parts;
    this.#started = started;
    this.#usage = new SandboxUsage({
      ...{ key, profile, signal: this.#lifetime.signal },
      started: () => this.#started,
      isBroken: () => this.#end !== undefined,
      link: (options) => this.#link(options),
    });
    const hooks = {
      low: () => parts.floor.low(),
      alive: () => this.#end === undefined,
      measure: () => this.#usage.measure(),
      disk: () => heldBy(this.#started.workspacePath),
      isCounted: () => this.#usage.isCounted,
      onBackgroundGrowth: () =>
        this.#recycle("processes that a command left in the background fill the workspace"),
      onBlind: () => this.#recycle("the workspace could no longer be measured"),
    };
    this.#quota = new QuotaGuard(profile.limits, hooks, profile.quotaFor);
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

  /** Runs the set-up in a container of its own, with the set-up's network. */
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
    const started = await this.#current(options);
    const full = await this.#full(started.link, options);
    const limits = tightenLimits(this.#profile.exec, parsed.data.limits ?? {});
    const { keptOutput } = this.#profile;
    return this.#run(started, { request: parsed.data, full, limits, keptOutput }, options);
  }

  get lastBytes(): number | undefined {
    return this.#quota.lastBytes;
  }

  get lastShared(): ReadonlyMap<SharedPath, number> {
    return this.#usage.lastShared;
  }

  measureShared(options: CallOptions = {}): Promise<void> {
    return this.#usage.measureShared(options);
  }

  get isReady(): boolean {
    return this.#end === undefined && this.#reviving === undefined && !this.#lifetime.signal.aborted;
  }

  async ready(options: CallOptions = {}): Promise<void> {
    await this.#current(options);
  }

  usage(options: CallOptions = {}): Promise<WorkspaceUsage> {
    return this.#usage.usage(options);
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
    // A fenced holder must not touch a container of a later epoch.
    if (this.#end?.why !== "fenced")
      await this.#parts.starter.discard(this.#parts.request, this.#started, options);
  }

  park(): Promise<boolean> {
    this.#parking ??= this.#park();
    return this.#parking;
  }

  async #park(): Promise<boolean> {
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
    // A container that starts now to replace a broken one has a link of its own.
    this.#reviving?.then(
      ({ link }) => link.close(),
      () => {},
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  get #profile(): SandboxProfile {
    return this.#parts.request.profile;
  }

  /** How the present container's link ended; undefined while it has not. */
  get #end(): LinkEnd | undefined {
    return this.#ends.get(this.#started);
  }

  /** Runs the set-up once in each container. A worker that adopts a container which is set up skips it. */
  async #setUp(apart: SetUpReport | undefined, call: CallOptions): Promise<void> {
    if (this.#profile.setup.command === "") return;
    const { setUpPath, containerId, origin, rootSetUp } = this.#started;
    if (rootSetUp) {
      this.#setUpReport = rootSetUp;
      return;
    }
    this.#setUpReport = apart ?? (await rememberedSetUp(setUpPath, containerId));
    if (this.#setUpReport && !apart) return;
    // A set-up in a container of its own succeeded before this container was made: else there would be none to adopt.
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
    const result = await this.#run(this.#started, { request, full, limits, keptOutput: "ends" }, options);
    if (call.signal?.aborted)
      throw new Fault("aborted", { operation: "set-up" }, { cause: call.signal.reason });
    return checkedSetUp(this.key, result);
  }

  async #full(link: Link, { signal }: ExecOptions): Promise<QuotaExceeded | undefined> {
    try {
      return await abortableWait(this.#quota.full(), signal, "measuring the workspace");
    } catch (error) {
      // If the link broke meanwhile, the command ends as lost, like one that had begun.
      if (await Promise.race([link.closed.then(() => true), setImmediate(false)])) return undefined;
      throw error;
    }
  }

  #run(
    started: Started,
    command: Pick<CommandRun, "request" | "full" | "limits" | "keptOutput">,
    options: ExecOptions,
  ): Promise<ExecResult> {
    const { link, imageEnv } = started;
    const run: CommandRun = {
      ...command,
      ...{ link, imageEnv, profile: this.#profile, locale: this.#parts.locale, quota: this.#quota },
      brokenOutcome: (end) => this.#brokenOutcome(started, end),
      onHung: (waitedMs) => this.#giveUp(started, { why: "unresponsive", waitedMs }),
    };
    return runCommand(run, options);
  }

  async #link(options: CallOptions = {}): Promise<Link> {
    return (await this.#current(options)).link;
  }

  /** The living container. A dead one is replaced first. */
  async #current(options: CallOptions): Promise<Started> {
    this.#lifetime.signal.throwIfAborted();
    if (this.#end === undefined && this.#reviving === undefined) return this.#started;
    if (this.#end?.why === "fenced") throw endFault(this.#end, { sandboxKey: this.key, epoch: this.epoch });
    this.#reviving ??= this.#revive().finally(() => {
      this.#reviving = undefined;
    });
    return abortableWait(this.#reviving, options.signal, "start");
  }

  async #revive(): Promise<Started> {
    await this.#retiring;
    const call = { signal: this.#lifetime.signal };
    const { started, apart } = await DockerSandbox.#prepare(this.#parts, call);
    this.#restarts++;
    this.#started = started;
    this.#quota.restarted();
    this.#follow(started);
    try {
      await this.#setUp(apart, call);
    } catch (error) {
      this.#recycle("its set-up command failed");
      throw error;
    }
    return started;
  }

  #follow(started: Started): void {
    void started.link.closed.then((end) => {
      if (this.#started === started) this.#broke(started, end);
    });
  }

  #broke(started: Started, end: LinkEnd): void {
    if (this.#ends.has(started)) return;
    this.#ends.set(started, end);
    // A container that hangs or lies must not go on running. One that died stays until it was asked why.
    if (end.why === "protocol" || end.why === "unresponsive" || end.why === "recycled") {
      this.#retiring = this.#parts.containers.remove(started.containerId, {}).catch(() => {});
    }
  }

  /** Ends everything in the container; the next call starts a fresh one. */
  #recycle(detail: string): void {
    this.#giveUp(this.#started, { why: "recycled", detail });
  }

  #giveUp(started: Started, end: LinkEnd): void {
    if (this.#started === started) this.#broke(started, end);
    started.link.close();
  }

  async #brokenOutcome(started: Started, end: LinkEnd): Promise<Outcome> {
    const { request, containers } = this.#parts;
    if (end.why === "closed" && this.#lifetime.signal.aborted)
      return { kind: "cancelled", reason: "the sandbox was stopped" };
    const first = this.#ends.get(started);
    const recycled = first?.why === "recycled" ? first.detail : undefined;
    return await lostOutcome(end, { request, containers, recycled, containerId: started.containerId });
  }
}
