import { runRequest } from "@berth/jobs";
import { type ArtifactStore, type Grants, grantedToAll, type JobArtifacts } from "@berth/ledger";
import { type Conversation, type Epoch, Fault, type SandboxKey, type SandboxProfile } from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import { type OpenSandbox, type SandboxPort, unlessAborted } from "@berth/tenancy";
import { checkedSandbox } from "./checked-sandbox.ts";
import { emptyWorkspace } from "./empty-workspace.ts";
import { ProfileGate } from "./profile-gate.ts";

export interface DriverSandboxRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** Of the worker: which of its processes holds the sandbox. */
  readonly instance: string;
  readonly leaseMs: number;
  /** By name; `default` is always there. */
  readonly profiles: ReadonlyMap<string, SandboxProfile>;
  readonly grants: Pick<Grants, "check">;
  /** The pool that the sandbox's first job chose. It never changes. */
  readonly pool: () => Promise<string>;
  /** Absent: no artifacts are kept. */
  readonly artifacts?: ArtifactStore | undefined;
  /** The sandbox runs here. Nothing runs in it before this has returned. */
  readonly onStarted: (signal: AbortSignal) => Promise<void>;
  readonly onStartFailed: (error: unknown) => void;
}

const defaultProfile = grantedToAll;
const defaultAgent = "default";

type SandboxJob = NonNullable<Parameters<SandboxPort["open"]>[0]>;

/**
 * A sandbox of the driver's, opened when the first job needs it. A job that names another profile waits until nothing runs,
 * then the container is replaced by one of that profile, on the same workspace.
 */
export class DriverSandbox implements SandboxPort {
  readonly #driver: SandboxDriver;
  readonly #request: DriverSandboxRequest;
  readonly #closing = new AbortController();
  readonly #gate = new ProfileGate(defaultProfile);
  #pool: string | undefined;
  #opening: Promise<Sandbox> | undefined;
  /** What a job was last given: which sandbox, in which of its lives. */
  #given: { readonly sandbox: Sandbox; readonly restarts: number } | undefined;

  constructor(driver: SandboxDriver, request: DriverSandboxRequest) {
    this.#driver = driver;
    this.#request = request;
  }

  isOpen(job?: Pick<SandboxJob, "profile">): boolean {
    const isOfProfile = job === undefined || (job.profile ?? defaultProfile) === this.#gate.profile;
    return isOfProfile && this.#opening !== undefined && this.#given?.sandbox.isReady === true;
  }

  async open(
    job: SandboxJob | undefined,
    { signal, leaseLeftMs }: { readonly signal: AbortSignal; readonly leaseLeftMs: () => number },
  ): Promise<OpenSandbox> {
    const wanted = job?.profile ?? defaultProfile;
    if (job) await unlessAborted(this.#checkGrants(job), signal);
    const profile = this.#settings(wanted, job?.tenant);
    await this.#gate.enter(wanted, signal, () => this.#stopOld());
    try {
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
        runRequest(request, {
          sandbox: checkedSandbox(sandbox, check),
          signal,
          limits: profile.exec,
          artifacts: this.#artifactsOf(conversation),
          onArtifact,
          onOutput: (stream, bytes) => onOutput({ stream, bytes: Buffer.from(bytes) }),
        }),
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
  async #checkGrants({ tenant, profile, request }: SandboxJob): Promise<void> {
    const { grants, pool } = this.#request;
    this.#pool ??= await pool();
    // What a tenant left in a pool that it may no longer use can still be removed.
    await grants.check(tenant, { profile, pool: request.kind === "destroy" ? undefined : this.#pool });
  }

  /** A profile that is not there is answered as one that was not granted. */
  #settings(name: string, tenant = ""): SandboxProfile {
    const found = this.#request.profiles.get(name);
    if (!found) throw new Fault("not-granted", { what: "profile", name, tenant });
    return found;
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
