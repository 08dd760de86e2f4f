import { runRequest } from "@berth/jobs";
import type { ArtifactStore, Grants, JobArtifacts } from "@berth/ledger";
import {
  BoundedWait,
  type Conversation,
  type Epoch,
  Fault,
  isFault,
  type JobResult,
  type SandboxKey,
  type SandboxProfile,
  sharedOwner,
  tenantOf,
} from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import { type OpenSandbox, type SandboxPort, unlessAborted } from "@berth/tenancy";
import { checkedSandbox } from "./checked-sandbox.ts";
import { emptyWorkspace } from "./empty-workspace.ts";
import { type Asked, type Policy, refuseDisabled } from "./policy.ts";
import { ProfileGate } from "./profile-gate.ts";

export interface DriverSandboxRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** Of the worker: which of its processes holds the sandbox. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly policy: Pick<Policy, "nameOf" | "resolve">;
  readonly grants: Pick<Grants, "check">;
  /** The pool that the sandbox's first job chose. It never changes. */
  readonly pool: () => Promise<string>;
  /** Absent: no artifacts are kept. */
  readonly artifacts?: ArtifactStore | undefined;
  /** The sandbox runs here. Nothing runs in it before this has returned. */
  readonly onStarted: (signal: AbortSignal) => Promise<void>;
  readonly onStartFailed: (error: unknown) => void;
}

const defaultAgent = "default";

type SandboxJob = NonNullable<Parameters<SandboxPort["open"]>[0]>;

/**
 * A sandbox of the driver's, opened when the first job needs it. A job whose profile is another waits until nothing runs, then the
 * container is replaced by one of that profile, on the same workspace: also when the profile was changed meanwhile.
 */
export class DriverSandbox implements SandboxPort {
  readonly #driver: SandboxDriver;
  readonly #request: DriverSandboxRequest;
  readonly #closing = new AbortController();
  readonly #gate = new ProfileGate();
  #pool: string | undefined;
  /** Of the last job's profile. */
  #idleMs: number | undefined;
  #opening: Promise<Sandbox> | undefined;
  /** What a job was last given: which sandbox, in which of its lives. */
  #given: { readonly sandbox: Sandbox; readonly restarts: number } | undefined;

  constructor(driver: SandboxDriver, request: DriverSandboxRequest) {
    this.#driver = driver;
    this.#request = request;
  }

  isOpen(job?: SandboxJob): boolean {
    const isReady = this.#opening !== undefined && this.#given?.sandbox.isReady === true;
    return isReady && (job === undefined || this.#isOfProfile(job));
  }

  async open(
    job: SandboxJob | undefined,
    { signal, leaseLeftMs }: { readonly signal: AbortSignal; readonly leaseLeftMs: () => number },
  ): Promise<OpenSandbox> {
    const { policy, key } = this.#request;
    // Before anything is said of the profile: a tenant without the grant learns nothing of it.
    if (job) await unlessAborted(this.#checkGrants(job, policy.nameOf(job)), signal);
    const { profile, hash } = policy.resolve(job ? askedBy(job) : ownerOf(key));
    if (job) refuseDisabled(job, profile);
    await this.#gate.enter(hash, signal, () => this.#stopOld());
    try {
      this.#idleMs = profile.idleMs;
      const before = this.#given;
      const sandbox = await unlessAborted(this.#sandbox(profile, leaseLeftMs), signal);
      await sandbox.ready({ signal });
      const { how, restarts } = sandbox.origin;
      this.#given = { sandbox, restarts };
      const same = before?.sandbox === sandbox && before.restarts === restarts;
      return { ...this.#opened(sandbox, profile, leaseLeftMs), cold: how === "started" && !same };
    } catch (error) {
      this.#gate.leave();
      if (!signal.aborted) this.#request.onStartFailed(error);
      throw error;
    }
  }

  /** A job that will be refused has no profile. */
  #isOfProfile(job: SandboxJob): boolean {
    try {
      return this.#request.policy.resolve(askedBy(job)).hash === this.#gate.profile;
    } catch (error) {
      if (isFault(error)) return false;
      throw error;
    }
  }

  get idleMs(): number | undefined {
    return this.#idleMs;
  }

  async close({ remove }: { remove: boolean }): Promise<void> {
    this.#closing.abort();
    const sandbox = await this.#opening?.catch(() => undefined);
    if (!sandbox) return;
    if (remove) await sandbox.stop();
    else sandbox.detach();
  }

  #opened(sandbox: Sandbox, profile: SandboxProfile, leaseLeftMs: () => number): OpenSandbox {
    return {
      limits: profile.exec,
      run: (request, { signal, onOutput, onArtifact, conversation, check }) =>
        within(profile.jobTimeoutMs, signal, (bounded) =>
          runRequest(request, {
            sandbox: checkedSandbox(sandbox, check),
            signal: bounded,
            limits: profile.exec,
            artifacts: this.#artifactsOf(conversation),
            onArtifact,
            onOutput: (stream, bytes) => onOutput({ stream, bytes: Buffer.from(bytes) }),
          }),
        ),
      destroy: (signal) => this.#destroy(sandbox, () => this.#sandbox(profile, leaseLeftMs), signal),
      done: () => this.#gate.leave(),
    };
  }

  #artifactsOf({ agent = defaultAgent, ...conversation }: Conversation): JobArtifacts | undefined {
    const { artifacts, key, epoch, instance } = this.#request;
    return artifacts?.forJob({ ...conversation, agent, key, holder: { epoch, instance } });
  }

  async #stopOld(): Promise<void> {
    const old = this.#opening;
    this.#opening = undefined;
    await (await old?.catch(() => undefined))?.stop();
  }

  /**
   * The files are removed inside, as the tenant; outside only the empty directory is. What the tenant left running can lock
   * the workspace or go on writing, so what one pass does not empty is emptied in a container that runs nothing else.
   */
  async #destroy(used: Sandbox, restarted: () => Promise<Sandbox>, signal: AbortSignal): Promise<void> {
    let sandbox = used;
    const { key, epoch, instance, artifacts } = this.#request;
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
  }

  async #stop(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    this.#opening = undefined;
    await sandbox.stop({ signal });
  }

  /** For every job: producers with access to Redis do not pass the gateway. */
  async #checkGrants({ tenant, request }: SandboxJob, profile: string): Promise<void> {
    const { grants, pool } = this.#request;
    this.#pool ??= await pool();
    // What a tenant left in a pool that it may no longer use can still be removed.
    await grants.check(tenant, { profile, pool: request.kind === "destroy" ? undefined : this.#pool });
  }

  /** Shared by all jobs that wait for it, so no one job's signal ends it. A start that failed is tried again by the next. */
  #sandbox(profile: SandboxProfile, leaseLeftMs: () => number): Promise<Sandbox> {
    this.#opening ??= this.#start(profile, leaseLeftMs).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #start(profile: SandboxProfile, leaseLeftMs: () => number): Promise<Sandbox> {
    const { key, epoch, leaseMs, onStarted } = this.#request;
    const { signal } = this.#closing;
    const sandbox = await this.#driver.start({ key, epoch, leaseMs, leaseLeftMs, profile }, { signal });
    try {
      await unlessAborted(onStarted(signal), signal);
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
  }
}

function askedBy(job: SandboxJob): Asked {
  return job.request.kind === "destroy" ? { ...job, emptied: true } : job;
}

/** Whose profile an adopted sandbox has before its first job. */
function ownerOf(key: SandboxKey): Asked {
  const tenant = tenantOf(key);
  return tenant === sharedOwner ? {} : { tenant };
}

/** A job with its time. One that is ended by it is timed out, with what its steps had left by then. */
async function within(
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
