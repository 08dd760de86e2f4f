import { type Conversation, type Epoch, Fault, type SandboxKey, type SandboxProfile } from "@berth/protocol";
import type { Sandbox, SandboxDriver } from "@berth/sandbox";
import type { ArtifactStore, JobArtifacts } from "@berth/streams";
import {
  checkedSandbox,
  type OpenSandbox,
  runRequest,
  type SandboxPort,
  unlessAborted,
} from "@berth/tenancy";

export interface DriverSandboxRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** Of the worker: which of its processes holds the sandbox. */
  readonly instance: string;
  readonly leaseMs: number;
  /** By name; `default` is always there. */
  readonly profiles: ReadonlyMap<string, SandboxProfile>;
  /** Absent: no artifacts are kept. */
  readonly artifacts?: ArtifactStore | undefined;
}

const defaultProfile = "default";
const defaultAgent = "default";
/** Entries of a workspace's root removed between two listings. */
const removedAtOnce = 1_000;

/**
 * A sandbox of the driver's, opened when the first job needs it. A job that names another profile waits until nothing runs,
 * then the container is replaced by one of that profile, on the same workspace.
 */
export class DriverSandbox implements SandboxPort {
  readonly #driver: SandboxDriver;
  readonly #request: DriverSandboxRequest;
  readonly #closing = new AbortController();
  #profile = defaultProfile;
  #opening: Promise<Sandbox> | undefined;
  /** What a job was last given: which sandbox, in which of its lives. */
  #given: { readonly sandbox: Sandbox; readonly restarts: number } | undefined;
  #users = 0;
  #unused = Promise.withResolvers<void>();

  constructor(driver: SandboxDriver, request: DriverSandboxRequest) {
    this.#driver = driver;
    this.#request = request;
  }

  async open(
    name: string | undefined,
    { signal, leaseLeftMs }: { readonly signal: AbortSignal; readonly leaseLeftMs: () => number },
  ): Promise<OpenSandbox> {
    const wanted = name ?? defaultProfile;
    const profile = this.#settings(wanted);
    while (this.#profile !== wanted && this.#users > 0) await unlessAborted(this.#unused.promise, signal);
    this.#users++;
    try {
      if (this.#profile !== wanted) await this.#changeTo(wanted);
      const before = this.#given;
      const sandbox = await unlessAborted(this.#sandbox(profile, leaseLeftMs), signal);
      await sandbox.ready({ signal });
      const { how, restarts } = sandbox.origin;
      this.#given = { sandbox, restarts };
      const same = before?.sandbox === sandbox && before.restarts === restarts;
      return { ...this.#opened(sandbox, profile), cold: how === "started" && !same };
    } catch (error) {
      this.#done();
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

  #opened(sandbox: Sandbox, profile: SandboxProfile): OpenSandbox {
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
      destroy: (signal) => this.#destroy(sandbox, signal),
      done: () => this.#done(),
    };
  }

  #artifactsOf({ agent = defaultAgent, ...conversation }: Conversation): JobArtifacts | undefined {
    const { artifacts, key, epoch, instance } = this.#request;
    return artifacts?.forJob({ ...conversation, agent, key, holder: { epoch, instance } });
  }

  async #changeTo(profile: string): Promise<void> {
    const old = this.#opening;
    this.#opening = undefined;
    this.#profile = profile;
    await (await old?.catch(() => undefined))?.stop();
  }

  #done(): void {
    this.#users--;
    if (this.#users > 0) return;
    this.#unused.resolve();
    this.#unused = Promise.withResolvers<void>();
  }

  /** The files are removed inside, as the tenant; outside only the empty directory is. */
  async #destroy(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    for (;;) {
      const { items } = await sandbox.files.list("", { signal, maxItems: removedAtOnce });
      if (items.length === 0) break;
      for (const { path } of items)
        await sandbox.files.remove(path, { recursive: true, missingOk: true, signal });
    }
    const { key, epoch, instance, artifacts } = this.#request;
    await artifacts?.forgetPersisted(key, { holder: { epoch, instance } });
    this.#opening = undefined;
    await sandbox.stop({ signal });
    await this.#driver.removeEmptyWorkspace(key);
  }

  #settings(name: string): SandboxProfile {
    const { profiles } = this.#request;
    const found = profiles.get(name);
    if (!found) throw new Fault("unknown-profile", { profile: name, known: [...profiles.keys()].join(", ") });
    return found;
  }

  /** Shared by all jobs that wait for it, so no one job's signal ends it. A start that failed is tried again by the next. */
  #sandbox(profile: SandboxProfile, leaseLeftMs: () => number): Promise<Sandbox> {
    const { key, epoch, leaseMs } = this.#request;
    const starting = () =>
      this.#driver.start({ key, epoch, leaseMs, leaseLeftMs, profile }, { signal: this.#closing.signal });
    this.#opening ??= starting().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}
