import { type ArtifactsPort, runRequest } from "@berth/jobs";
import type { MeasuredBytes } from "@berth/ledger";
import {
  BoundedWait,
  type Conversation,
  Fault,
  isEnding,
  isFault,
  isWorkspaceRequest,
  type JobResult,
  type SandboxProfile,
  type SetUpReport,
  tenantOf,
} from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import {
  type ClosingHow,
  type OpenSandbox,
  type SandboxPort,
  type TenancyBounds,
  unlessAborted,
} from "@berth/tenancy";
import { allowedArtifacts } from "./allowed-artifacts.ts";
import { checkedSandbox } from "./checked-sandbox.ts";
import type { DriverSandboxOptions } from "./driver-sandbox-options.ts";
import { emptyWorkspace } from "./empty-workspace.ts";
import { fetchingBy } from "./fetching.ts";
import { defaultAgent, isTemporary, JobAdmission, type JobInputs, noInputs } from "./job-admission.ts";
import { jobOutlet } from "./job-outlet.ts";
import { ProfileGate } from "./profile-gate.ts";
import { ruledSandbox } from "./ruled-sandbox.ts";
import { startSandbox, type Wanted } from "./sandbox-start.ts";
import type { Outlet } from "./secrets/outlet.ts";
import { scrubbedArtifacts } from "./secrets/scrubbed-artifacts.ts";
import { scrubbedSandbox } from "./secrets/scrubbed-sandbox.ts";
import { SharedBytes, type UsedSandbox } from "./shared-bytes.ts";

/** For removing a fork that its job does not keep. */
const discardMs = 60_000;

type SandboxJob = NonNullable<Parameters<SandboxPort["open"]>[0]>;

/** The container that the last job got. `restarts` distinguishes a container from the one that replaced it. */
interface Given extends UsedSandbox {
  readonly restarts: number;
}

/**
 * The sandbox of one tenancy, opened when the first job needs it. A job of another profile waits until nothing runs. Then a container of
 * that profile replaces the present one, on the same workspace. A profile that was changed meanwhile counts as another.
 */
export class DriverSandbox implements SandboxPort {
  readonly #driver: SandboxDriver;
  readonly #options: DriverSandboxOptions;
  readonly #admission: JobAdmission;
  readonly #closing = new AbortController();
  readonly #gate = new ProfileGate();
  readonly #bytes = new SharedBytes();
  /** Of the last job. */
  #profile: SandboxProfile | undefined;
  #opening: Promise<Sandbox> | undefined;
  /** No container was started since the workspace was removed. */
  #isGone = false;
  /** The hash of the open container's profile. */
  #openedHash: string | undefined;
  /** The snapshot that the open sandbox is known to be a fork of. */
  #forkOf: string | undefined;
  /** When the set-up ended that was reported last. */
  #reportedSetUp: number | undefined;
  #given: Given | undefined;

  constructor(driver: SandboxDriver, options: DriverSandboxOptions) {
    this.#driver = driver;
    this.#options = options;
    this.#admission = new JobAdmission(options);
  }

  isOpen(job?: SandboxJob): boolean {
    const isReady = this.#opening !== undefined && this.#given?.sandbox.isReady === true;
    return isReady && (job === undefined || this.#isOfOpenProfile(job));
  }

  async open(
    job: SandboxJob | undefined,
    { signal, leaseLeftMs }: { readonly signal: AbortSignal; readonly leaseLeftMs: () => number },
  ): Promise<OpenSandbox> {
    const admitted = await this.#admission.admit(job, signal);
    const { profile, hash } = admitted;
    const inputs = job ? await this.#admission.prepare(job, profile, signal) : noInputs;
    const { snapshots } = this.#options;
    const isNewFork = job?.forkOf !== undefined && job.forkOf !== this.#forkOf;
    let mayReplace = false;
    let isAlone = false;
    try {
      mayReplace = isNewFork && (await unlessAborted(snapshots.isOwn(), signal));
      isAlone = job !== undefined && (mayReplace || isWorkspaceRequest(job.request));
      const change = async () => {
        if (this.#openedHash !== hash) await this.#stopOld();
      };
      await this.#gate.enter(isAlone ? `${hash} alone ${job?.id}` : hash, signal, change);
    } catch (error) {
      inputs.release();
      throw error;
    }
    try {
      this.#profile = profile;
      const before = this.#given;
      if (job && (isAlone || job.forkOf !== this.#forkOf))
        await unlessAborted(snapshots.prepare(job, profile), signal);
      this.#openedHash = hash;
      if (mayReplace) await this.#removeEmpty(admitted, leaseLeftMs, signal);
      const { sandbox, wanted } = await unlessAborted(
        this.#sandboxFor(job, { ...admitted, forkOf: job?.forkOf }, leaseLeftMs),
        signal,
      );
      if (job?.forkOf !== undefined && job.forkOf !== this.#forkOf) {
        await unlessAborted(snapshots.checkFork(job.forkOf), signal);
        this.#forkOf = job.forkOf;
      }
      await sandbox.ready({ signal });
      const { how, restarts } = sandbox.origin;
      this.#given = { sandbox, restarts, agent: wanted.agent };
      this.#reportSetUp(sandbox.origin.setUp, profile);
      const same = before?.sandbox === sandbox && before.restarts === restarts;
      if (before?.sandbox === sandbox && !same) this.#options.onRestarted();
      return {
        ...this.#opened(sandbox, { ...wanted, discard: job?.discard === true }, inputs, leaseLeftMs),
        cold: how === "started" && !same,
      };
    } catch (error) {
      inputs.release();
      this.#gate.leave();
      if (!signal.aborted) this.#options.onStartFailed(error);
      if (!isFault(error, "setup-failed")) throw error;
      const { sandboxKey, how, wallMs, output } = error.context;
      this.#reportSetUp({ ok: false, how, output, wallMs, endedAtMs: Date.now() }, profile);
      const masked = this.#setUpText(output, profile);
      throw new Fault("setup-failed", { sandboxKey, how, wallMs, output: masked }, { cause: error.cause });
    }
  }

  /** The sandbox that the job runs in. A job that ends a sandbox whose own profile cannot start gets a bare one. */
  async #sandboxFor(
    job: SandboxJob | undefined,
    wanted: Wanted,
    leaseLeftMs: () => number,
  ): Promise<{ readonly sandbox: Sandbox; readonly wanted: Wanted }> {
    try {
      return { sandbox: await this.#sandbox(wanted, leaseLeftMs), wanted };
    } catch (error) {
      if (!job || !isEnding(job.request) || !isFault(error) || isTemporary(error)) throw error;
      const { hash, ...bare } = this.#options.policy.bare;
      this.#openedHash = hash;
      const plain = { ...bare, agent: undefined, forkOf: undefined, peerless: true };
      return { sandbox: await this.#sandbox(plain, leaseLeftMs), wanted: plain };
    }
  }

  #reportSetUp(report: SetUpReport | undefined, profile: SandboxProfile): void {
    if (report === undefined || report.endedAtMs === this.#reportedSetUp) return;
    this.#reportedSetUp = report.endedAtMs;
    this.#options.onSetUp({ ...report, output: this.#setUpText(report.output, profile) });
  }

  /** Masks the output again, as both streams are one text here; and no filter was on a set-up that ran as root. */
  #setUpText(output: string, profile: SandboxProfile): string {
    return this.#outletOf({ tenant: tenantOf(this.#options.key), jobId: "set-up" }, profile).text(output);
  }

  #isOfOpenProfile(job: SandboxJob): boolean {
    if (isWorkspaceRequest(job.request)) return false;
    if (job.forkOf !== undefined && job.forkOf !== this.#forkOf) return false;
    const hash = this.#admission.hashOf(job);
    return hash !== undefined && hash === this.#gate.profile;
  }

  get bounds(): TenancyBounds | undefined {
    return this.#profile ?? this.#admission.ownProfile();
  }

  get weight(): number {
    return (this.#profile ?? this.#admission.ownProfile())?.weight ?? 1;
  }

  /** In the workspace and in the directories that it shares, as last measured. Undefined: not yet, or the workspace was removed. */
  get lastBytes(): MeasuredBytes | undefined {
    return this.#bytes.measured(this.#opening === undefined ? undefined : this.#given);
  }

  /** Redis has these bytes of shared directories. */
  forgetLeft(noted: ReadonlyMap<string, number>): void {
    this.#bytes.forget(noted);
  }

  async close(how: ClosingHow): Promise<void> {
    try {
      await this.#close(how);
    } finally {
      this.#options.egress.leave();
    }
  }

  async #close(how: ClosingHow): Promise<void> {
    this.#closing.abort();
    const sandbox = await this.#opening?.catch(() => undefined);
    if (how !== "remove") await this.#measureShared();
    if (this.#isGone) await this.#options.onGone();
    if (!sandbox) return;
    this.#options.onClosed(await givenUp(sandbox, how));
  }

  #opened(
    sandbox: Sandbox,
    { discard, ...wanted }: Wanted & { readonly discard: boolean },
    { variables, release, tools }: JobInputs,
    leaseLeftMs: () => number,
  ): OpenSandbox {
    const { profile, forkOf } = wanted;
    const { key } = this.#options;
    const restarted = () => this.#sandbox(wanted, leaseLeftMs);
    return {
      limits: profile.exec,
      run: async (request, { signal, onOutput, onArtifact, conversation, check }) => {
        const gate = this.#options.egress.of(profile);
        const egressOf = gate.meter.begin(conversation.jobId);
        const running = withinJobTime(profile.jobTimeoutMs, signal, async (bounded) => {
          const outlet = this.#outletOf(conversation, profile);
          const result = await runRequest(request, {
            sandbox: scrubbedSandbox(
              ruledSandbox(checkedSandbox(sandbox, check), profile.rules),
              outlet,
              variables,
            ),
            signal: bounded,
            limits: profile.exec,
            artifacts: this.#artifactsOf(conversation, outlet, profile),
            onArtifact,
            download: fetchingBy(gate),
            tool: (call) => tools.prepare(call).command,
            onOutput: (stream, bytes) => onOutput({ stream, bytes: Buffer.from(bytes) }),
          });
          return outlet.result(result);
        });
        // Also after a failure: the audit log then has the job's traffic.
        const result = await running.finally(egressOf);
        if (discard && forkOf !== undefined) await this.#discard(sandbox, restarted);
        const egress = egressOf();
        return egress === undefined ? result : { ...result, egress: this.#options.egress.shown(egress) };
      },
      workspace: async (request, { jobId, signal, check }) => {
        const { entries, bytes } = await sandbox.usage({ signal });
        await this.#stop(sandbox, signal);
        const owner = { key, profile };
        return this.#options.snapshots.carryOut(request, owner, { jobId, entries, bytes, signal, check });
      },
      stop: (signal) => this.#stop(sandbox, signal),
      destroy: (signal) => this.#destroy(sandbox, restarted, signal),
      done: () => {
        release();
        this.#gate.leave();
      },
    };
  }

  #outletOf(job: { readonly tenant: string; readonly jobId: string }, profile: SandboxProfile): Outlet {
    return jobOutlet(this.#options, job, profile);
  }

  #artifactsOf(
    { agent = defaultAgent, ...conversation }: Conversation,
    outlet: Outlet,
    { rules }: SandboxProfile,
  ): ArtifactsPort | undefined {
    const { artifacts, key, epoch, instance } = this.#options;
    const ofJob = artifacts?.forJob({ ...conversation, agent, key, holder: { epoch, instance } });
    return ofJob && allowedArtifacts(scrubbedArtifacts(ofJob, outlet), rules);
  }

  async #stopOld(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#forkOf = undefined;
    const old = await opening?.catch(() => undefined);
    if (!old) return;
    this.#options.onRebuilt();
    await this.#measureShared();
    await old.stop();
  }

  /**
   * Removes the files inside, as the tenant, and outside only the empty directory. Processes that the tenant left running can lock the
   * workspace or go on writing. So a workspace that one pass does not empty is emptied in a container that runs nothing else.
   */
  async #destroy(used: Sandbox, restarted: () => Promise<Sandbox>, signal: AbortSignal): Promise<void> {
    let sandbox = used;
    const { key, epoch, instance, artifacts } = this.#options;
    if ((await emptyWorkspace(used, { signal, passes: 1 })) !== undefined) {
      await this.#stop(used, signal);
      sandbox = await unlessAborted(restarted(), signal);
      const obstacle = await emptyWorkspace(sandbox, { signal, passes: Number.POSITIVE_INFINITY });
      if (obstacle !== undefined)
        throw new Fault("workspace-unusable", { path: key, detail: `it cannot be emptied: ${obstacle}` });
    }
    await artifacts?.forgetPersisted(key, { holder: { epoch, instance } });
    await this.#stop(sandbox, signal);
    await this.#driver.removeEmptyWorkspace(key);
    this.#isGone = this.#opening === undefined;
    if (this.#isGone) await this.#options.onDestroyed();
  }

  /** Removes a fork, however its job ended. One that cannot be removed now stays, as a fork that is kept does. */
  async #discard(sandbox: Sandbox, restarted: () => Promise<Sandbox>): Promise<void> {
    await this.#destroy(sandbox, restarted, AbortSignal.timeout(discardMs)).catch((error: unknown) => {
      if (!isFault(error)) throw error;
    });
  }

  /**
   * Removes an empty workspace, to make room for a fork. Only the sandbox's own container shows that the workspace is empty. That
   * container must be gone before the fork is made: one that runs or is parked would keep the old directory.
   */
  async #removeEmpty(
    wanted: Omit<Wanted, "forkOf">,
    leaseLeftMs: () => number,
    signal: AbortSignal,
  ): Promise<void> {
    if (!(await this.#options.snapshots.isOwn())) return;
    const sandbox = await unlessAborted(this.#sandbox({ ...wanted, forkOf: undefined }, leaseLeftMs), signal);
    const { items } = await sandbox.files.list("", { maxItems: 1, signal });
    if (items.length > 0) return;
    await this.#stop(sandbox, signal);
    await this.#driver.removeEmptyWorkspace(this.#options.key);
    this.#isGone = true;
  }

  async #measureShared(): Promise<void> {
    if (this.#given) await this.#bytes.measureLast(this.#given);
  }

  async #stop(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    await this.#measureShared();
    this.#opening = undefined;
    this.#forkOf = undefined;
    await sandbox.stop({ signal });
  }

  /** Shared by all jobs that wait for the start, so no single job's signal aborts it. The next job retries a failed start. */
  #sandbox(wanted: Wanted, leaseLeftMs: () => number): Promise<Sandbox> {
    this.#opening ??= this.#start(wanted, leaseLeftMs).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #start(wanted: Wanted, leaseLeftMs: () => number): Promise<Sandbox> {
    this.#isGone = false;
    const { signal } = this.#closing;
    return await startSandbox(this.#driver, this.#options, wanted, { signal, leaseLeftMs });
  }
}

async function givenUp(sandbox: Sandbox, how: ClosingHow): Promise<"removed" | "parked" | "left"> {
  switch (how) {
    case "remove":
      await sandbox.stop();
      return "removed";
    case "leave":
      sandbox.detach();
      return "left";
    case "park":
      return (await sandbox.park()) ? "parked" : "removed";
  }
}

/** Runs a job within its profile's time. A job that this time ended is timed out, with the results of the steps that were done. */
async function withinJobTime(
  timeoutMs: number,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<JobResult>,
): Promise<JobResult> {
  if (timeoutMs === 0) return await run(signal);
  using wait = new BoundedWait().endWith(signal).endAfter(timeoutMs);
  const result = await run(wait.signal);
  if (!wait.isLate || result.outcome.kind !== "cancelled") return result;
  return { ...result, outcome: { kind: "timed-out", afterMs: timeoutMs } };
}
