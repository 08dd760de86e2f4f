import type { Socket } from "node:net";
import { EgressProxy } from "@berth/egress";
import { type ArtifactsPort, runRequest } from "@berth/jobs";
import type { ArtifactStore, Grants, MeasuredBytes, Shared } from "@berth/ledger";
import {
  agentDirectory,
  agentIn,
  approvalMs,
  BoundedWait,
  type Conversation,
  type Epoch,
  Fault,
  type FaultCode,
  FileRefusal,
  isEnding,
  isFault,
  isWorkspaceRequest,
  type Job,
  type JobResult,
  type SandboxKey,
  type SandboxProfile,
  type SetUpReport,
  sharedOwner,
  type TenantId,
  tenantOf,
} from "@berth/protocol";
import type { Sandbox, SandboxDriver, SandboxOrigin, SnapshotReport } from "@berth/sandbox";
import {
  type ClosingHow,
  type OpenSandbox,
  type SandboxPort,
  type TenancyBounds,
  unlessAborted,
} from "@berth/tenancy";
import type { GateOptions } from "./approval-gate.ts";
import { checkedSandbox } from "./checked-sandbox.ts";
import type { EgressGates } from "./egress.ts";
import { emptyWorkspace } from "./empty-workspace.ts";
import { fetchingBy } from "./fetching.ts";
import { type JobTools, noTools } from "./job-tools.ts";
import { type Asked, type Policy, type Resolved, refuseByRules, refuseDisabled } from "./policy.ts";
import { ProfileGate } from "./profile-gate.ts";
import { Outlet } from "./secrets/outlet.ts";
import type { SandboxSecrets } from "./secrets/sandbox-secrets.ts";
import { scrubbedArtifacts } from "./secrets/scrubbed-artifacts.ts";
import { scrubbedSandbox } from "./secrets/scrubbed-sandbox.ts";
import type { Values } from "./secrets/tenant-secrets.ts";
import type { SandboxSnapshots } from "./snapshots/sandbox-snapshots.ts";

export interface OpenedSandbox {
  readonly how: SandboxOrigin["how"];
  readonly link: SandboxOrigin["link"];
  readonly ms: number;
}

export interface DriverSandboxRequest {
  readonly key: SandboxKey;
  readonly epoch: Epoch;
  /** The worker's process that holds the sandbox. */
  readonly instance: string;
  readonly leaseMs: number;
  readonly policy: Pick<Policy, "nameOf" | "resolve" | "bare">;
  readonly grants: Pick<Grants, "check" | "peersOf">;
  readonly egress: Pick<EgressGates, "of">;
  /** The pool that the sandbox's first job chose. It never changes. */
  readonly pool: () => Promise<string>;
  readonly secrets: SandboxSecrets;
  /** Output of the job looks like a key. */
  readonly onLeak: (found: LeakFound) => void;
  /** Absent: no artifacts are kept. */
  readonly artifacts?: ArtifactStore | undefined;
  readonly snapshots: SandboxSnapshots;
  /** Throws when this host cannot have it together with what it shares. */
  readonly tie: (shared: readonly Shared[]) => Promise<void>;
  /** The sandbox runs here. Nothing runs in it before this has returned. */
  readonly onStarted: (opened: OpenedSandbox, signal: AbortSignal) => Promise<void>;
  readonly onStartFailed: (error: unknown) => void;
  /** A peer's files are at /team in a fresh container. */
  readonly onCopied: (peer: string, report: SnapshotReport) => void;
  /** Its container was given up. Parked: it waits for the sandbox's next holder on this host. */
  readonly onClosed: (how: "removed" | "parked" | "left") => void;
  /** Its workspace is gone. */
  readonly onDestroyed: () => Promise<void>;
  /** The sandbox is given up, and no container was started since its workspace was removed. */
  readonly onGone: () => Promise<void>;
  /** Its profile is another now, and its container goes. */
  readonly onRebuilt: () => void;
  /** Its container had ended by itself, and a fresh one was started. */
  readonly onRestarted: () => void;
  /** Whether the lease is still this tenancy's, by Redis. */
  readonly isHeld: () => Promise<boolean>;
  /** Throws unless an administrator has approved the job. */
  readonly approved: (job: Job, options: GateOptions) => Promise<void>;
  /** The custom tools that the job uses. Throws `tool-refused` for one that it may not use so. */
  readonly tools: (job: Job, profile: string) => Promise<JobTools>;
  /** The profile's set-up command has ended, well or not. */
  readonly onSetUp: (report: SetUpReport) => void;
}

/** The key itself is not in it. */
export interface LeakFound {
  readonly tenant: string;
  readonly jobId: string;
  readonly kind: string;
  readonly encoding: string;
  readonly fingerprint: string;
  readonly blocked: boolean;
}

/** Per job: a command can print a million keys. */
const mostLeaksReported = 20;
/** For removing a fork that its job does not keep. */
const discardMs = 60_000;
/** A walk of a directory that is full of files. */
const measureSharedMs = 10_000;
/** What an empty directory takes on the disk: those that are counted in bytes alone could be as many as one likes. */
const leastShared = 4_096;
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
  /** Of the last job. */
  #profile: SandboxProfile | undefined;
  #opening: Promise<Sandbox> | undefined;
  /** No container was started since its workspace was removed. */
  #isGone = false;
  /** The profile of the container that is open, by its hash. */
  #openedHash: string | undefined;
  /** The snapshot that the open sandbox is known to be a fork of. */
  #forkOf: string | undefined;
  /** When the set-up ended that was noted last. */
  #notedSetUp: number | undefined;
  /** What a job was last given: which sandbox, in which of its lives. */
  #given:
    | { readonly sandbox: Sandbox; readonly restarts: number; readonly agent: string | undefined }
    | undefined;
  /** Bytes in shared directories when a container was given up that could write them, until Redis knows them. */
  readonly #left = new Map<string, number>();

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
    const admitted = await this.#admit(job, signal);
    const { profile, hash } = admitted;
    const ofJob = job ? await this.#prepared(job, profile, signal) : nothingGiven;
    const { snapshots } = this.#request;
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
      ofJob.release();
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
      this.#noteSetUp(sandbox.origin.setUp, profile);
      const same = before?.sandbox === sandbox && before.restarts === restarts;
      if (before?.sandbox === sandbox && !same) this.#request.onRestarted();
      return {
        ...this.#opened(sandbox, { ...wanted, discard: job?.discard === true }, ofJob, leaseLeftMs),
        cold: how === "started" && !same,
      };
    } catch (error) {
      ofJob.release();
      this.#gate.leave();
      if (!signal.aborted) this.#request.onStartFailed(error);
      if (!isFault(error, "setup-failed")) throw error;
      const { sandboxKey, how, wallMs, output } = error.context;
      this.#noteSetUp({ ok: false, how, output, wallMs, endedAtMs: Date.now() }, profile);
      const masked = this.#setUpText(output, profile);
      throw new Fault("setup-failed", { sandboxKey, how, wallMs, output: masked }, { cause: error.cause });
    }
  }

  /** The profile of a job that may have it. A job that ends its sandbox always may: in the last resort, in a bare one. */
  async #admit(job: SandboxJob | undefined, signal: AbortSignal): Promise<Admitted> {
    const { policy } = this.#request;
    try {
      // Before any error about the profile: a tenant without the grant learns nothing of it.
      if (job) await unlessAborted(this.#checkGrants(job, policy.nameOf(job)), signal);
      return this.#resolve(job);
    } catch (error) {
      if (!job || !isEnding(job.request) || !isFault(error) || mayPass(error)) throw error;
      return { ...policy.bare, agent: undefined };
    }
  }

  /** What its commands get. Throws unless the job may run in the profile, and has the approval that it needs. */
  async #prepared(job: SandboxJob, profile: SandboxProfile, signal: AbortSignal): Promise<OfJob> {
    refuseDisabled(job, profile);
    if (isEnding(job.request)) {
      refuseByRules(job, profile, noTools);
      return nothingGiven;
    }
    const { policy, secrets } = this.#request;
    const tools = await unlessAborted(this.#request.tools(job, policy.nameOf(job)), signal);
    refuseByRules(job, profile, tools);
    const giving = secrets.give(job, profile);
    try {
      const { variables, release } = await unlessAborted(giving, signal);
      const expiresMs = approvalMs(profile.rules, job.request, tools.prepare);
      if (expiresMs !== undefined) {
        const mask = (text: string) => secrets.scrubber.maskText(text);
        await unlessAborted(this.#request.approved(job, { expiresMs, tools, mask }), signal);
      }
      return { tools, variables, release };
    } catch (error) {
      // Also when it was not waited for to its end.
      giving.then(({ release }) => release()).catch(() => {});
      throw error;
    }
  }

  /** In which the job is carried out. One whose own profile cannot start is ended in a bare one. */
  async #sandboxFor(
    job: SandboxJob | undefined,
    wanted: Wanted,
    leaseLeftMs: () => number,
  ): Promise<{ readonly sandbox: Sandbox; readonly wanted: Wanted }> {
    try {
      return { sandbox: await this.#sandbox(wanted, leaseLeftMs), wanted };
    } catch (error) {
      if (!job || !isEnding(job.request) || !isFault(error) || mayPass(error)) throw error;
      const { hash, ...bare } = this.#request.policy.bare;
      this.#openedHash = hash;
      const plain = { ...bare, agent: undefined, forkOf: undefined, peerless: true };
      return { sandbox: await this.#sandbox(plain, leaseLeftMs), wanted: plain };
    }
  }

  /** Jobs of two agents with directories of their own never share a container. */
  #resolve(job: SandboxJob | undefined): Admitted {
    const { policy, key } = this.#request;
    const { profile: whole, hash, operators } = policy.resolve(job ? askedBy(job) : ownerOf(key));
    const isShared = tenantOf(key) === sharedOwner;
    const profile = isShared
      ? { ...whole, agentAccess: "none" as const, toolsAccess: "none" as const }
      : whole;
    if (profile.agentAccess === "none") return { profile, hash, operators, agent: undefined };
    const agent = job?.agent ?? agentIn(key) ?? defaultAgent;
    return { profile, hash: `${hash} ${agent}`, operators, agent };
  }

  #noteSetUp(report: SetUpReport | undefined, profile: SandboxProfile): void {
    if (report === undefined || report.endedAtMs === this.#notedSetUp) return;
    this.#notedSetUp = report.endedAtMs;
    this.#request.onSetUp({ ...report, output: this.#setUpText(report.output, profile) });
  }

  /** Both streams as one text; that of a set-up as root came from a container that no filter was on. */
  #setUpText(output: string, profile: SandboxProfile): string {
    return this.#outletOf(tenantOf(this.#request.key), "set-up", profile).text(output);
  }

  /** A job that will be refused has no profile. */
  #isOfProfile(job: SandboxJob): boolean {
    if (isWorkspaceRequest(job.request)) return false;
    if (job.forkOf !== undefined && job.forkOf !== this.#forkOf) return false;
    try {
      return this.#resolve(job).hash === this.#gate.profile;
    } catch (error) {
      if (isFault(error)) return false;
      throw error;
    }
  }

  get bounds(): TenancyBounds | undefined {
    return this.#known;
  }

  get weight(): number {
    return this.#known?.weight ?? 1;
  }

  /** Before the first job, the tenant's own; undefined while its layers are not valid. */
  get #known(): SandboxProfile | undefined {
    if (this.#profile) return this.#profile;
    const { policy, key } = this.#request;
    try {
      return policy.resolve(ownerOf(key)).profile;
    } catch (error) {
      if (isFault(error)) return undefined;
      throw error;
    }
  }

  /** In the workspace and in what it shares, as last measured. Undefined: not yet, or it was removed. */
  get lastBytes(): MeasuredBytes | undefined {
    const { sandbox, agent } = this.#given ?? {};
    const bytes = this.#opening === undefined ? undefined : sandbox?.lastBytes;
    if (sandbox === undefined || bytes === undefined)
      return this.#left.size === 0 ? undefined : { own: undefined, shared: new Map(this.#left) };
    const now = sharedBytes(sandbox, agent);
    const others = [...now.values()].reduce((sum, one) => sum + one, 0);
    return { own: Math.max(0, bytes - others), shared: new Map([...this.#left, ...now]) };
  }

  /** Redis knows these: what an earlier container left need not be told again. */
  forgetLeft(noted: ReadonlyMap<string, number>): void {
    for (const [name, bytes] of noted) if (this.#left.get(name) === bytes) this.#left.delete(name);
  }

  async close(how: ClosingHow): Promise<void> {
    this.#closing.abort();
    const sandbox = await this.#opening?.catch(() => undefined);
    if (how !== "remove") await this.#measureShared();
    if (this.#isGone) await this.#request.onGone();
    if (!sandbox) return;
    this.#request.onClosed(await givenUp(sandbox, how));
  }

  #opened(
    sandbox: Sandbox,
    { discard, ...wanted }: Wanted & { readonly discard: boolean },
    { variables, release, tools }: OfJob,
    leaseLeftMs: () => number,
  ): OpenSandbox {
    const { profile, forkOf } = wanted;
    const restarted = () => this.#sandbox(wanted, leaseLeftMs);
    return {
      limits: profile.exec,
      run: async (request, { signal, onOutput, onArtifact, conversation, check }) => {
        const gate = this.#request.egress.of(this.#request.key, profile);
        const egressOf = gate.meter.begin(conversation.jobId);
        const running = within(profile.jobTimeoutMs, signal, async (bounded) => {
          const outlet = this.#outletOf(conversation.tenant, conversation.jobId, profile);
          const result = await runRequest(request, {
            sandbox: scrubbedSandbox(checkedSandbox(sandbox, check), outlet, variables),
            signal: bounded,
            limits: profile.exec,
            artifacts: this.#artifactsOf(conversation, outlet),
            onArtifact,
            download: fetchingBy(gate),
            tool: (call) => tools.prepare(call).command,
            onOutput: (stream, bytes) => onOutput({ stream, bytes: Buffer.from(bytes) }),
          });
          return outlet.result(result);
        });
        // Also of one that fails: its traffic is in the audit log by then.
        const result = await running.finally(egressOf);
        if (discard && forkOf !== undefined) await this.#discard(sandbox, restarted);
        const egress = egressOf();
        return egress === undefined ? result : { ...result, egress };
      },
      workspace: async (request, { jobId, signal, check }) => {
        const { entries, bytes } = await sandbox.usage({ signal });
        await this.#stop(sandbox, signal);
        const owner = { key: this.#request.key, profile };
        return this.#request.snapshots.carryOut(request, owner, { jobId, entries, bytes, signal, check });
      },
      stop: (signal) => this.#stop(sandbox, signal),
      destroy: (signal) => this.#destroy(sandbox, restarted, signal),
      done: () => {
        release();
        this.#gate.leave();
      },
    };
  }

  #outletOf(tenant: string, jobId: string, { leaks }: SandboxProfile): Outlet {
    const { secrets, onLeak } = this.#request;
    const blocked = leaks === "block";
    const reported = new Set<string>();
    return new Outlet({
      scrubber: () => secrets.scrubber,
      leaks,
      onLeak: ({ kind, encoding, fingerprint }) => {
        if (reported.size >= mostLeaksReported || reported.has(fingerprint)) return;
        reported.add(fingerprint);
        onLeak({ tenant, jobId, kind, encoding, fingerprint, blocked });
      },
    });
  }

  #artifactsOf(
    { agent = defaultAgent, ...conversation }: Conversation,
    outlet: Outlet,
  ): ArtifactsPort | undefined {
    const { artifacts, key, epoch, instance } = this.#request;
    const ofJob = artifacts?.forJob({ ...conversation, agent, key, holder: { epoch, instance } });
    return ofJob && scrubbedArtifacts(ofJob, outlet);
  }

  async #stopOld(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#forkOf = undefined;
    const old = await opening?.catch(() => undefined);
    if (!old) return;
    this.#request.onRebuilt();
    await this.#measureShared();
    await old.stop();
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
    this.#isGone = this.#opening === undefined;
    if (this.#isGone) await this.#request.onDestroyed();
  }

  /** However its job ended. What cannot be removed now stays, as a fork that is kept does. */
  async #discard(sandbox: Sandbox, restarted: () => Promise<Sandbox>): Promise<void> {
    await this.#destroy(sandbox, restarted, AbortSignal.timeout(discardMs)).catch((error: unknown) => {
      if (!isFault(error)) throw error;
    });
  }

  /**
   * An empty workspace makes room for a fork. Only its own container shows that it is empty, and it must be gone first: beneath one that
   * runs or is parked, the directory would be another than the fork's.
   */
  async #removeEmpty(
    wanted: Omit<Wanted, "forkOf">,
    leaseLeftMs: () => number,
    signal: AbortSignal,
  ): Promise<void> {
    if (!(await this.#request.snapshots.isOwn())) return;
    const sandbox = await unlessAborted(this.#sandbox({ ...wanted, forkOf: undefined }, leaseLeftMs), signal);
    const { items } = await sandbox.files.list("", { maxItems: 1, signal });
    if (items.length > 0) return;
    await this.#stop(sandbox, signal);
    await this.#driver.removeEmptyWorkspace(this.#request.key);
    this.#isGone = true;
  }

  /**
   * The next container may have other directories, and no one else measures these: an agent's name may come once. What cannot be
   * measured in time stays as it was last.
   */
  async #measureShared(): Promise<void> {
    const { sandbox, agent } = this.#given ?? {};
    if (!sandbox) return;
    await sandbox.measureShared({ signal: AbortSignal.timeout(measureSharedMs) }).catch((error: unknown) => {
      if (!isFault(error) && !(error instanceof FileRefusal)) throw error;
    });
    for (const [name, bytes] of sharedBytes(sandbox, agent)) this.#left.set(name, bytes);
  }

  async #stop(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    await this.#measureShared();
    this.#opening = undefined;
    this.#forkOf = undefined;
    await sandbox.stop({ signal });
  }

  /** Checked for every job: a producer with access to Redis bypasses the gateway. */
  async #checkGrants({ tenant, request }: SandboxJob, profile: string): Promise<void> {
    const { grants, pool } = this.#request;
    this.#pool ??= await pool();
    // What a tenant left in a pool that it may no longer use can still be stopped and removed.
    await grants.check(tenant, { profile, pool: isEnding(request) ? undefined : this.#pool });
  }

  /** Shared by all jobs that wait for the start, so no single job's signal aborts it. The next job retries a failed start. */
  #sandbox(wanted: Wanted, leaseLeftMs: () => number): Promise<Sandbox> {
    this.#opening ??= this.#start(wanted, leaseLeftMs).catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Tenants whose files it may read. Throws if this host does not have them. */
  async #peers(): Promise<readonly TenantId[]> {
    const { key, grants, tie } = this.#request;
    const tenant = tenantOf(key);
    if (tenant === sharedOwner) return [];
    const peers = await grants.peersOf(tenant);
    if (peers.length > 0) await tie(peers.map((peer) => `team.${peer}` as const));
    return peers;
  }

  async #start(
    { profile, operators, agent, forkOf, peerless }: Wanted,
    leaseLeftMs: () => number,
  ): Promise<Sandbox> {
    this.#isGone = false;
    const { key, epoch, leaseMs, onStarted, onCopied, isHeld, tie } = this.#request;
    const { signal } = this.#closing;
    refuseOpenNetwork(profile);
    const proxy = new EgressProxy(this.#request.egress.of(key, profile));
    const wayOut = { onConnection: (socket: Socket) => proxy.accept(socket) };
    const shared: Shared[] = [
      ...(profile.toolsAccess === "none" ? [] : (["tools"] as const)),
      ...(agent === undefined ? [] : ([`agent.${agent}`] as const)),
    ];
    if (shared.length > 0) await unlessAborted(tie(shared), signal);
    const peers = async () => (peerless ? [] : await this.#peers());
    if (forkOf !== undefined) await this.#request.snapshots.fork(forkOf, { key, profile }, signal);
    const askedMs = performance.now();
    const outputFilter = () => this.#outletOf(tenantOf(key), "set-up", profile).filter();
    const request = {
      key,
      epoch,
      leaseMs,
      leaseLeftMs,
      profile,
      operators,
      agent,
      isHeld,
      outputFilter,
      wayOut,
      peers,
      onSnapshot: onCopied,
    };
    const sandbox = await this.#driver.start(request, { signal });
    try {
      const { how, link } = sandbox.origin;
      const opened = { how, link, ms: Math.round(performance.now() - askedMs) };
      await unlessAborted(onStarted(opened, signal), signal);
      return sandbox;
    } catch (error) {
      await sandbox.stop();
      throw error;
    }
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

/** The rules would bind nothing that goes out by a network of its own. */
function refuseOpenNetwork({ egress, network }: SandboxProfile): void {
  if (egress.length === 0 || network === "none") return;
  const detail = `its network is ${network}, on which commands reach more than the rules allow`;
  throw new Fault("egress-unavailable", { detail });
}

/** What one job brings. */
interface OfJob {
  readonly variables: Values;
  /** Its secrets need not be masked for its own sake from then on. */
  readonly release: () => void;
  readonly tools: JobTools;
}

const nothingGiven: OfJob = { variables: {}, release: () => {}, tools: noTools };

/** Of a container. */
interface Wanted extends Pick<Resolved, "profile" | "operators"> {
  /** Whose directory it has, if it has one. */
  readonly agent: string | undefined;
  /** The snapshot whose files it starts with, if it has none yet. */
  readonly forkOf: Job["forkOf"];
  /** Without its peers' files. */
  readonly peerless?: boolean;
}

type Admitted = Resolved & Pick<Wanted, "agent">;

/** It says nothing of the profile: later, or elsewhere, the same start may work. */
function mayPass({ code }: Fault): boolean {
  return passing.has(code);
}

const passing: ReadonlySet<FaultCode> = new Set<FaultCode>([
  ...(["aborted", "fenced", "tied-elsewhere", "workspace-unusable"] as const),
  ...(["engine-unreachable", "engine-timeout", "engine-wedged"] as const),
]);

function askedBy(job: SandboxJob): Asked {
  return job.request.kind === "destroy" ? { ...job, emptied: true } : job;
}

/** By the names that Redis has them under. */
function sharedBytes({ lastShared }: Sandbox, agent = defaultAgent): Map<string, number> {
  const named = [...lastShared].map(([place, bytes]) => {
    const name = place === agentDirectory ? `${place}.${agent}` : place;
    return [name, Math.max(bytes, leastShared)] as const;
  });
  return new Map(named);
}

/** Whose profile an adopted sandbox has before its first job. */
function ownerOf(key: SandboxKey): Asked {
  const tenant = tenantOf(key);
  const agent = agentIn(key);
  return tenant === sharedOwner
    ? {}
    : { tenant, ...(agent === undefined || agent === defaultAgent ? {} : { agent }) };
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
