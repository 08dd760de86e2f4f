import { access } from "node:fs/promises";
import { Fault, FileRefusal, isFault } from "@berth/protocol";
import { InitConnection } from "../init/connection.ts";
import { InitLink } from "../init/link.ts";
import { LinkListener } from "../init/link-listener.ts";
import type { Link } from "../link.ts";
import type { CallOptions, SandboxOrigin, StartRequest } from "../port.ts";
import type { AttachedStream } from "./attached-stream.ts";
import { containerSpec, specHash } from "./container-spec.ts";
import type { ContainerFacts, Containers } from "./containers.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { type EtcFile, placeEtcFiles } from "./etc-files.ts";
import { hostMounts } from "./host-mounts.ts";
import { ensureImage, type ImageFacts, type PullProgress } from "./image.ts";
import { containerName, writeLabels } from "./labels.ts";
import { clearLinkDirectory, prepareLinkDirectory } from "./link-directory.ts";
import { readSeccomp } from "./seccomp-file.ts";
import { prepareWorkspace, type WorkspaceHome, type WorkspaceOptions } from "./workspace.ts";

export interface StarterOptions {
  readonly fleet: string;
  readonly worker: string;
  readonly initPath: string;
  readonly helloDeadlineMs: number;
  readonly fileDeadlineMs: number;
  /** Directories of the host beneath which profiles may mount. */
  readonly mountRoots: readonly string[];
  readonly pullDeadlineMs: number;
  readonly onPull?: ((progress: PullProgress) => void) | undefined;
  /** Try to reach init over a socket. */
  readonly unixLink: boolean;
}

export interface Started {
  readonly containerId: string;
  /** On the host. */
  readonly workspacePath: string;
  readonly link: Link;
  /** The image's ENV. */
  readonly imageEnv: readonly string[];
  readonly origin: Omit<SandboxOrigin, "restarts">;
}

/** What of the host and of its image a sandbox gets. */
interface Home {
  readonly imageEnv: readonly string[];
  readonly workspace: WorkspaceHome;
  readonly etcFiles: readonly EtcFile[];
  readonly linkDirectory: string;
  readonly hostMounts: Awaited<ReturnType<typeof hostMounts>>;
  readonly seccomp: string | undefined;
}

/** How runtimes report that init was built for another machine. */
const foreignWords = /exec format error/i;
const killedCode = 137;

/**
 * Brings a sandbox from nothing, or from what an earlier life left, to a link that answers.
 *
 *   find by name ──ours, same config, answers hello──▶ adopted
 *        └──anything else: remove──▶ create ──▶ attach and start ──▶ hello ──▶ started
 */
export class Starter {
  readonly #engine: Engine;
  readonly #containers: Containers;
  readonly #workspaces: () => Promise<WorkspaceOptions>;
  readonly #options: StarterOptions;

  constructor(
    engine: Engine,
    containers: Containers,
    workspaces: () => Promise<WorkspaceOptions>,
    options: StarterOptions,
  ) {
    this.#engine = engine;
    this.#containers = containers;
    this.#workspaces = workspaces;
    this.#options = options;
  }

  async start(request: StartRequest, call: CallOptions): Promise<Started> {
    const { image } = request.profile;
    const facts = await ensureImage(this.#engine, image, { ...this.#options, signal: call.signal });
    const workspaces = await this.#workspaces();
    const workspace = await prepareWorkspace(request.key, { ...workspaces, user: request.profile.user });
    const etcFiles = await placeEtcFiles({
      workspacesRoot: workspaces.root,
      user: workspace.user,
      profile: request.profile,
    });
    const home: Home = {
      ...{ workspace, etcFiles, imageEnv: facts.env },
      linkDirectory: await prepareLinkDirectory(request.key, workspaces.root),
      hostMounts: await hostMounts(request.profile, this.#options.mountRoots),
      seccomp: await readSeccomp(request.profile.seccomp),
    };
    const adopted = await this.#adoptOrClear(request, facts, home, call);
    return adopted ?? (await withWorkdir(request, await this.#startFresh(request, facts, home, call), call));
  }

  #spec(request: StartRequest, image: ImageFacts, home: Home) {
    const spec = containerSpec({
      profile: request.profile,
      ...home,
      initPath: this.#options.initPath,
      imageVolumes: image.volumes,
    });
    const config = specHash(spec, image.id);
    const { fleet, worker } = this.#options;
    return {
      config,
      spec: {
        ...spec,
        name: containerName(fleet, request.key),
        Labels: writeLabels({
          fleet,
          worker,
          sandboxKey: request.key,
          epoch: request.epoch,
          config,
        }),
      },
    };
  }

  async #adoptOrClear(
    request: StartRequest,
    image: ImageFacts,
    home: Home,
    call: CallOptions,
  ): Promise<Started | undefined> {
    const found = await this.#containers.find(containerName(this.#options.fleet, request.key), call);
    if (!found) return undefined;
    if (found.epoch > request.epoch) {
      throw new Fault("fenced", { sandboxKey: request.key, epoch: request.epoch, highestEpoch: found.epoch });
    }
    const { config } = this.#spec(request, image, home);
    const ours = found.running && found.worker === this.#options.worker && found.config === config;
    if (ours) {
      try {
        return await this.#adopt(request, found, home, call);
      } catch (error) {
        if (isFault(error, "fenced") || isFault(error, "aborted")) throw error;
      }
    }
    await this.#containers.remove(found.id, call);
    return undefined;
  }

  async #adopt(
    request: StartRequest,
    found: ContainerFacts,
    home: Home,
    call: CallOptions,
  ): Promise<Started> {
    const stream = await this.#containers.attach(found.id, call);
    const { connection, hello } = await this.#connect(request, stream, home, { resync: true, ...call });
    await connection.killLeftovers(hello.running);
    return {
      containerId: found.id,
      workspacePath: home.workspace.path,
      link: this.#initLink(connection, request),
      imageEnv: home.imageEnv,
      origin: {
        how: "adopted",
        link: connection.carrier,
        killedLeftovers: hello.running.length,
        watchdogFired: hello.watchdogFired,
      },
    };
  }

  async #startFresh(
    request: StartRequest,
    image: ImageFacts,
    home: Home,
    call: CallOptions,
  ): Promise<Started> {
    const { initPath } = this.#options;
    await access(initPath).catch((cause) => {
      throw new Fault("init-missing", { path: initPath }, { cause });
    });
    const { spec } = this.#spec(request, image, home);
    await clearLinkDirectory(home.linkDirectory);
    const start = (id: string) => this.#containers.start(id, call);
    const attach = (id: string) => this.#containers.attach(id, call);
    try {
      // It takes its turn in the engine beside the start, instead of before it.
      return await this.#startAttached(request, spec, home, call, async (id) => {
        const [stream] = await Promise.all([attach(id), start(id)]);
        return stream;
      });
    } catch (error) {
      if (!(error instanceof DiedAtOnce)) throw error;
    }
    try {
      return await this.#startAttached(request, spec, home, call, async (id) => {
        const stream = await attach(id);
        await start(id);
        return stream;
      });
    } catch (error) {
      throw error instanceof DiedAtOnce ? error.fault : error;
    }
  }

  async #startAttached(
    request: StartRequest,
    spec: Parameters<Containers["create"]>[0],
    home: Home,
    call: CallOptions,
    attachAndStart: (id: string) => Promise<AttachedStream>,
  ): Promise<Started> {
    const containerId = await this.#create(request, spec, call);
    try {
      const stream = await attachAndStart(containerId);
      const { connection } = await this.#connect(request, stream, home, { resync: false, ...call });
      return {
        containerId,
        workspacePath: home.workspace.path,
        link: this.#initLink(connection, request),
        imageEnv: home.imageEnv,
        origin: { how: "started", link: connection.carrier, killedLeftovers: 0, watchdogFired: false },
      };
    } catch (error) {
      const cause = await this.#whyNotStarted(error, containerId, request);
      await this.#containers.remove(containerId, {}).catch(() => {});
      throw cause;
    }
  }

  async #create(
    request: StartRequest,
    spec: Parameters<Containers["create"]>[0],
    call: CallOptions,
  ): Promise<string> {
    try {
      return await this.#containers.create(spec, call);
    } catch (error) {
      const { runtime } = request.profile;
      if (runtime !== undefined && refusedWith(error, 400) && /runtime/i.test((error as Error).message)) {
        const info = await this.#engine.call("engine info", () => this.#engine.docker.info(), call);
        throw new Fault(
          "runtime-missing",
          { runtime, available: Object.keys(info.Runtimes ?? {}).join(", ") },
          { cause: error },
        );
      }
      throw startFault(error, request);
    }
  }

  async #connect(
    request: StartRequest,
    stream: AttachedStream,
    home: Home,
    { resync, signal }: CallOptions & { readonly resync: boolean },
  ) {
    await using listener = await this.#listen(request, home);
    const connection = new InitConnection(stream, {
      sandboxKey: request.key,
      epoch: request.epoch,
      leaseMs: request.leaseMs,
      leaseLeftMs: request.leaseLeftMs,
      deadlineMs: this.#options.helloDeadlineMs,
      resync,
      listener,
      signal,
    });
    return { connection, hello: await connection.open() };
  }

  /** Undefined where this worker cannot listen; stdio is then all there is. */
  async #listen({ epoch }: StartRequest, { workspace, linkDirectory }: Home) {
    if (!this.#options.unixLink) return undefined;
    const [uid = 0, gid = 0] = workspace.user.split(":").map(Number);
    const owner = workspace.ownUid ? { uid, gid } : undefined;
    return LinkListener.open({ directory: linkDirectory, owner }, epoch).catch(() => undefined);
  }

  #initLink(connection: InitConnection, request: StartRequest): InitLink {
    return new InitLink(connection, {
      sandboxKey: request.key,
      epoch: request.epoch,
      deadlineMs: this.#options.fileDeadlineMs,
    });
  }

  /** Tells an init that was built for another machine from a container that failed otherwise. */
  async #whyNotStarted(error: unknown, containerId: string, request: StartRequest): Promise<unknown> {
    if (!isFault(error, "engine-refused") && !isFault(error, "sandbox-start-failed")) return error;
    const { detail } = error.context;
    // The runtime says it to the engine or on the container's own stderr, depending on how far it got.
    if (foreignWords.test(detail)) return new Fault("init-foreign", { path: this.#options.initPath, detail });
    if (isFault(error, "engine-refused")) return startFault(error, request);
    const found = await this.#containers.find(containerId, {}).catch(() => undefined);
    // Killed for memory, or by hand, needs no words.
    if (!found || found.running || found.oomKilled || found.exitCode === killedCode) return error;
    const why = { sandboxKey: request.key, detail: `${detail} (exit code ${found.exitCode})` };
    return new DiedAtOnce(new Fault("sandbox-start-failed", why, { cause: error }));
  }
}

/** Makes the profile's directory for commands. Where that is refused, commands that would run there are, with the reason. */
async function withWorkdir(
  { profile: { workdir, workspace } }: StartRequest,
  started: Started,
  { signal }: CallOptions,
): Promise<Started> {
  if (workdir === "" || workspace === "ro") return started;
  try {
    await started.link.files.makeDirectory(workdir, { parents: true, signal });
  } catch (error) {
    if (!(error instanceof FileRefusal)) throw error;
  }
  return started;
}

/** Its last words may have been before we were attached. */
class DiedAtOnce extends Error {
  override readonly name = "DiedAtOnce";
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.message);
    this.fault = fault;
  }
}

function startFault(error: unknown, request: StartRequest): unknown {
  if (!isFault(error, "engine-refused")) return error;
  return new Fault(
    "sandbox-start-failed",
    { sandboxKey: request.key, detail: error.context.detail },
    { cause: error },
  );
}
