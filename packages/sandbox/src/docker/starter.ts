import { access } from "node:fs/promises";
import { join } from "node:path";
import { Fault, isFault, type SandboxProfile, type SetUpReport } from "@berth/protocol";
import type { InitConnection } from "../init/connection.ts";
import type { Link } from "../link.ts";
import type { CallOptions, SandboxOrigin, StartRequest } from "../port.ts";
import { Adopter, type AdopterOptions, type Reached, type Survivor, type Wanted } from "./adopter.ts";
import { AttachedStream } from "./attached-stream.ts";
import { Connector } from "./connector.ts";
import { containerSpec, specHash } from "./container-spec.ts";
import type { Containers } from "./containers.ts";
import type { DerivedImages } from "./derived-images.ts";
import { diskOf } from "./disk.ts";
import type { DiskFloor } from "./disk-floor.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { placeEtcFiles } from "./etc-files.ts";
import { makeFreshFolders } from "./fresh-folders.ts";
import { hostMounts } from "./host-mounts.ts";
import type { ImageFacts, PullProgress } from "./image.ts";
import type { ImageNotes } from "./image-notes.ts";
import { containerName, writeLabels } from "./labels.ts";
import { clearLinkDirectory } from "./link-directory.ts";
import type { ParkedContainers } from "./parked.ts";
import { PeerCopies } from "./peer-copies.ts";
import type { WorkspaceQuotas } from "./quota/workspace-quotas.ts";
import { RecentImages } from "./recent-images.ts";
import { derivedProfile, setsUpAsRoot } from "./root-set-up.ts";
import { type SandboxHome, SandboxHomes } from "./sandbox-home.ts";
import { readSeccomp } from "./seccomp-file.ts";
import { unmetField } from "./unmet-field.ts";
import type { Mounter } from "./warm/mounter.ts";
import { WarmAssigner } from "./warm/warm-assigner.ts";
import type { WarmPool } from "./warm/warm-pool.ts";
import { isWarmable, type WarmShape, warmShape } from "./warm/warm-shape.ts";
import type { WorkspaceOptions } from "./workspace.ts";

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
  readonly onReplaced?: AdopterOptions["onReplaced"];
  /** Which images sandboxes were made of. */
  readonly notes?: ImageNotes | undefined;
  /** Images in which a set-up command has run as root. */
  readonly derived: DerivedImages;
  /** Try to reach init over a socket. */
  readonly unixLink: boolean;
  readonly parked: () => Promise<ParkedContainers>;
  readonly quotas: WorkspaceQuotas;
  readonly floor: Pick<DiskFloor, "whileRoom">;
}

export interface Started {
  readonly containerId: string;
  /** A container with another is not adopted. */
  readonly config: string;
  /** On the host. */
  readonly workspacePath: string;
  readonly link: Link;
  /** Where it is remembered that the container is set up. */
  readonly setUpPath: string;
  /** The image's ENV. */
  readonly imageEnv: readonly string[];
  readonly origin: Omit<SandboxOrigin, "restarts" | "setUp">;
  /** How the set-up command ended in its image; absent where that has none of its own. */
  readonly rootSetUp?: SetUpReport;
}

export interface StartCall extends CallOptions {
  /** Where there is no container to adopt, before a fresh one is made. */
  readonly beforeFresh?: () => Promise<void>;
}

/** What an earlier life of the sandbox left. */
interface Before {
  readonly reached: Reached | undefined;
  readonly survivors: Promise<readonly Survivor[]> | undefined;
}

/** A container that was assigned before it was known whether the sandbox has one. */
type Early =
  | { readonly started: Started; readonly alone: boolean }
  | { readonly started?: undefined; readonly alone: false };

interface Specified {
  readonly spec: Parameters<Containers["create"]>[0];
  readonly config: string;
}

/** A container whose init has answered. */
interface Answering {
  readonly containerId: string;
  readonly config: string;
  readonly connection: InitConnection;
  readonly home: SandboxHome;
  readonly how: Pick<SandboxOrigin, "how" | "killedLeftovers" | "watchdogFired">;
}

/** How runtimes report that init was built for another machine. */
const foreignWords = /exec format error/i;
const killedCode = 137;
/** Each other worker that removes an old container of the sandbox's unmounts its image once. */
const mountAttempts = 3;

/**
 * Brings a sandbox from nothing, or from what an earlier life left, to a link that answers.
 *
 *   one of this sandbox's ──`Adopter`──▶ adopted
 *        └──none, or it was removed──▶ create ──▶ attach and start ──▶ hello ──▶ started
 */
export class Starter {
  readonly #engine: Engine;
  readonly #containers: Containers;
  readonly #workspaces: () => Promise<WorkspaceOptions>;
  readonly #options: StarterOptions;
  readonly #adopter: Adopter;
  readonly #homes: SandboxHomes;
  readonly #connector: Connector;
  readonly #images: RecentImages;
  #warm: WarmAssigner | undefined;

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
    this.#adopter = new Adopter({ ...options, containers });
    this.#homes = new SandboxHomes({ ...options, workspaces });
    this.#connector = new Connector(options);
    this.#images = new RecentImages(engine, options);
  }

  async start(request: StartRequest, call: StartCall): Promise<Started> {
    if (!setsUpAsRoot(request.profile)) return await this.#startOf(request, undefined, call);
    const { image } = request.profile;
    const base = await this.#images.facts(image, true, call);
    const maker = request.operators ?? request.profile;
    const derived = await this.#options.derived.of(request.key, maker, base, call);
    const profile = derivedProfile(request.profile, derived.name);
    const started = await this.#startOf({ ...request, profile }, derived.facts, call);
    return { ...started, rootSetUp: derived.report };
  }

  /** `known`: what there is to know of its image. */
  async #startOf(
    request: StartRequest,
    known: ImageFacts | undefined,
    { beforeFresh, ...call }: StartCall,
  ): Promise<Started> {
    const record = await this.#adopter.look(request);
    const reaching = record && this.#adopter.reach(record, call);
    // Beside what follows: most sandboxes have none, and the engine takes a moment to say so.
    const survivors = record ? undefined : this.#adopter.survivors(request, call);
    survivors?.catch(() => {});
    const claims = record ? undefined : this.#adopter.claims(request);
    claims?.catch(() => {});
    try {
      const mayBeRecent = record !== undefined || (this.#warm?.pool.report.ready ?? 0) > 0;
      const facts = known ?? (await this.#images.facts(request.profile.image, mayBeRecent, call));
      const home = await this.#homes.prepare(request, facts);
      const early =
        survivors && (await claims)?.length === 0
          ? await this.#assignEarly(request, facts, home, { survivors, call })
          : undefined;
      if (early?.alone) return await this.#prepared(request, home, early.started, call);
      const reached = await reaching;
      const before = { reached, survivors: early?.started ? undefined : survivors };
      const adopted = await this.#adopt(request, before, facts, home, call);
      if (adopted) return adopted;
      reached?.stream?.destroy();
      await this.#peerCopies(facts).copy(request, home, call);
      await beforeFresh?.();
      const start = async () =>
        (early ? undefined : await this.#assignWarm(request, facts, home, call)) ??
        (await this.#startFresh(request, facts, home, call));
      const started = home.quota === "image" ? await this.#startMounted(request, start) : await start();
      return await this.#prepared(request, home, started, call);
    } catch (error) {
      void reaching?.then((reached) => reached?.stream?.destroy());
      throw error;
    }
  }

  /**
   * The end of an earlier container, by this worker or another, may have unmounted the image, also while this one was started. It would
   * see the empty directory beneath.
   */
  async #startMounted(request: StartRequest, start: () => Promise<Started>): Promise<Started> {
    for (let attempt = 1; attempt <= mountAttempts; attempt++) {
      await this.#homes.mount(request);
      const started = await start();
      if (await this.#options.quotas.isMounted(request.key)) return started;
      started.link.close();
      await this.#adopter.discard(request, started.containerId, {});
    }
    const { root } = await this.#workspaces();
    const detail = "its image does not stay mounted";
    throw new Fault("workspace-unusable", { path: join(root, request.key), detail });
  }

  /** A container in which init cannot make what a sandbox begins with is not used. */
  async #prepared(
    request: StartRequest,
    { shared }: SandboxHome,
    started: Started,
    call: CallOptions,
  ): Promise<Started> {
    try {
      await makeFreshFolders(request, shared, started, call);
      return started;
    } catch (error) {
      started.link.close();
      await this.#containers.remove(started.containerId, {}).catch(() => {});
      throw error;
    }
  }

  /** init ends everything in the container and confirms it; then any worker of this host may adopt it. False: it is not so. */
  async park(
    { key, epoch, profile }: StartRequest,
    { link, containerId, config }: Started,
  ): Promise<boolean> {
    try {
      const { memoryBytes = profile.limits.memoryBytes, stream } = await link.park();
      if (stream instanceof AttachedStream) this.#adopter.keep(containerId, stream);
      await (await this.#options.parked()).park({ containerId, key, epoch, config, memoryBytes });
      return true;
    } catch {
      return false;
    }
  }

  async discard(
    request: StartRequest,
    { containerId }: Pick<Started, "containerId">,
    call: CallOptions,
  ): Promise<void> {
    await this.#adopter.discard(request, containerId, call);
    await this.#options.quotas.unmount(request.key);
  }

  async #adopt(
    request: StartRequest,
    { reached, survivors }: Before,
    image: ImageFacts,
    home: SandboxHome,
    call: CallOptions,
  ): Promise<Started | undefined> {
    const { config } = this.#spec(request, image, home);
    const wanted: Wanted = {
      config,
      connect: (stream, { resync }) => this.#connector.connect(request, stream, home, { resync, ...call }),
    };
    const adopted = await this.#adopter.adopt(request, reached, survivors, wanted, call);
    if (!adopted) return undefined;
    const { containerId, connection, killedLeftovers, watchdogFired } = adopted;
    const how = { how: "adopted", killedLeftovers, watchdogFired } as const;
    return this.#started(request, { containerId, connection, config, home, how });
  }

  #started(request: StartRequest, { containerId, connection, config, home, how }: Answering): Started {
    return {
      ...{ containerId, config, setUpPath: home.setUpPath, workspacePath: home.workspace.path },
      ...{ link: this.#connector.link(connection, request), imageEnv: home.imageEnv },
      origin: { ...how, link: connection.carrier, quota: home.quota },
    };
  }

  #spec(request: StartRequest, image: ImageFacts, home: SandboxHome): Specified {
    const spec = containerSpec({
      profile: request.profile,
      ...home,
      initPath: this.#options.initPath,
      imageVolumes: image.volumes,
    });
    const { command } = request.profile.setup;
    const config = specHash(spec, image.id, [...(command === "" ? [] : [command]), ...home.peers]);
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

  #peerCopies(facts: ImageFacts): PeerCopies {
    return new PeerCopies({
      ...{
        fleet: this.#options.fleet,
        floor: this.#options.floor,
        containers: this.#containers,
        workspaces: this.#workspaces,
      },
      start: async (copier, workspaceOf, call) =>
        this.#startFresh(copier, facts, await this.#homes.prepare(copier, facts, workspaceOf), call),
    });
  }

  /**
   * While the engine looks for a container of this sandbox's, which is rarely there. Nothing runs in the new one before the engine has
   * answered; if there is one, the new one is removed. A set-up of its own comes first. Undefined: it was not tried.
   */
  async #assignEarly(
    request: StartRequest,
    image: ImageFacts,
    home: SandboxHome,
    { survivors, call }: { readonly survivors: Promise<readonly Survivor[]>; readonly call: CallOptions },
  ): Promise<Early | undefined> {
    if (request.profile.setup.command !== "" || home.quota === "image" || !this.#warm) return undefined;
    const started = await this.#assignWarm(request, image, home, call);
    if (!started) return { alone: false };
    const alone = await survivors.then(
      (found) => found.every(({ id }) => id === started.containerId),
      () => false,
    );
    if (alone) return { started, alone };
    started.link.close();
    await this.discard(request, started, {});
    return { started, alone };
  }

  /** A container that was started ahead of time. Undefined: none is ready, or it could not be assigned. */
  async #assignWarm(
    request: StartRequest,
    image: ImageFacts,
    home: SandboxHome,
    call: CallOptions,
  ): Promise<Started | undefined> {
    const { profile } = request;
    // What else is mounted, such as peers' files, a container has from its start.
    const isPlain = home.workspace.ownUid && home.shared.directories.length === 0;
    if (!this.#warm || !isPlain || !isWarmable(profile)) return undefined;
    const { config } = this.#spec(request, image, home);
    const shape = warmShape(profile, image, { ...home, initPath: this.#options.initPath });
    const assigned = await this.#warm.assign(shape, {
      ...{ request, config, workspace: home.workspace, linkDirectory: home.linkDirectory },
      signal: call.signal,
      connect: async (stream, mounted) => {
        mounted.catch(() => {});
        await clearLinkDirectory(home.linkDirectory);
        const { connection } = await this.#connector.connect(request, stream, home, {
          ...{ resync: false, after: mounted },
          ...call,
        });
        return connection;
      },
    });
    if (!assigned) return undefined;
    const how = { how: "warm", killedLeftovers: 0, watchdogFired: false } as const;
    return this.#started(request, { ...assigned, config, home, how });
  }

  /** What a container must be that any sandbox of that profile can have. Undefined: none can be started ahead of time. */
  async warmShapeOf(given: SandboxProfile, call: CallOptions): Promise<WarmShape | undefined> {
    if (!isWarmable(given)) return undefined;
    const { initPath, mountRoots } = this.#options;
    const base = await this.#images.facts(given.image, true, call);
    // The first sandbox makes it, and gets the error if that fails.
    const derived = setsUpAsRoot(given) ? await this.#options.derived.find(given, base, call) : undefined;
    if (setsUpAsRoot(given) && !derived) return undefined;
    const profile = derived ? derivedProfile(given, derived.name) : given;
    const image = derived?.facts ?? base;
    return warmShape(profile, image, {
      initPath,
      hostMounts: await hostMounts(profile, mountRoots),
      seccomp: await readSeccomp(profile.seccomp),
      disk: await diskOf((await this.#workspaces()).root),
    });
  }

  /** From now on, sandboxes get their containers from there if they can. */
  useWarm(pool: WarmPool, mounter: Mounter, root: string): void {
    this.#warm = new WarmAssigner({
      ...{ pool, mounter, root, parked: this.#options.parked },
      // The ordinary container that comes next has the same workspace: its image stays mounted.
      discard: (request, containerId) => this.#adopter.discard(request, containerId, {}),
    });
  }

  async #startFresh(
    request: StartRequest,
    image: ImageFacts,
    home: SandboxHome,
    call: CallOptions,
  ): Promise<Started> {
    const { initPath } = this.#options;
    await access(initPath).catch((cause) => {
      throw new Fault("init-missing", { path: initPath }, { cause });
    });
    using _deferred = this.#warm?.pool.deferTo();
    const specified = this.#spec(request, image, home);
    await Promise.all([clearLinkDirectory(home.linkDirectory), placeEtcFiles(home.etcInput)]);
    const start = (id: string) => this.#containers.start(id, call);
    const attach = (id: string) => this.#containers.attach(id, call);
    try {
      // It takes its turn in the engine beside the start, instead of before it.
      return await this.#startAttached(request, specified, home, call, async (id) => {
        const [stream] = await Promise.all([attach(id), start(id)]);
        return stream;
      });
    } catch (error) {
      if (!(error instanceof DiedAtOnce)) throw error;
    }
    try {
      return await this.#startAttached(request, specified, home, call, async (id) => {
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
    { spec, config }: Specified,
    home: SandboxHome,
    call: CallOptions,
    attachAndStart: (id: string) => Promise<AttachedStream>,
  ): Promise<Started> {
    const containerId = await this.#create(request, spec, call);
    try {
      const stream = await attachAndStart(containerId);
      const { connection } = await this.#connector.connect(request, stream, home, { resync: false, ...call });
      const how = { how: "started", killedLeftovers: 0, watchdogFired: false } as const;
      return this.#started(request, { containerId, connection, config, home, how });
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
  const unmet = unmetField(error.context.detail, request.profile);
  if (unmet) return new Fault("profile-unmet", { ...unmet, detail: error.context.detail }, { cause: error });
  return new Fault(
    "sandbox-start-failed",
    { sandboxKey: request.key, detail: error.context.detail },
    { cause: error },
  );
}
