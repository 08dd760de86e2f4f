import { join } from "node:path";
import { Fault, type SandboxProfile } from "@berth/protocol";
import type { CallOptions, StartRequest } from "../port.ts";
import { Adopter, type AdopterOptions, type Reached, type Survivor, type Wanted } from "./adopter.ts";
import { AttachedStream } from "./attached-stream.ts";
import { Connector } from "./connector.ts";
import type { Containers } from "./containers.ts";
import type { DerivedImages } from "./derived-images.ts";
import { diskOf } from "./disk.ts";
import type { DiskFloor } from "./disk-floor.ts";
import type { Engine } from "./engine.ts";
import { FreshContainers } from "./fresh-container.ts";
import { makeFreshFolders } from "./fresh-folders.ts";
import { hostMounts } from "./host-mounts.ts";
import type { ImageFacts, PullProgress } from "./image.ts";
import type { ImageNotes } from "./image-notes.ts";
import { clearLinkDirectory } from "./link-directory.ts";
import type { ParkedContainers } from "./parked.ts";
import { PeerCopies } from "./peer-copies.ts";
import { type PlannedContainer, planContainer } from "./planned-container.ts";
import type { WorkspaceQuotas } from "./quota/workspace-quotas.ts";
import { RecentImages } from "./recent-images.ts";
import { derivedProfile, setsUpAsRoot } from "./root-set-up.ts";
import { type SandboxHome, SandboxHomes } from "./sandbox-home.ts";
import { readSeccomp } from "./seccomp-file.ts";
import type { AnsweringContainer, Started } from "./started.ts";
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

export interface StartCall extends CallOptions {
  /** Called when there is no container to adopt, before a fresh one is made. */
  readonly beforeFresh?: () => Promise<void>;
}

/** The containers that the sandbox may have had before. */
interface EarlierContainers {
  readonly reached: Reached | undefined;
  readonly survivors: Promise<readonly Survivor[]> | undefined;
}

/** A container of the warm pool that was assigned before the engine had answered whether the sandbox has one. */
type Early =
  | { readonly started: Started; readonly alone: boolean }
  | { readonly started?: undefined; readonly alone: false };

/** Each other worker that removes an older container of this sandbox unmounts the image once. */
const mountAttempts = 3;

/**
 * Gets a sandbox a container whose init answers.
 *
 *   it has one ──`Adopter`──▶ adopted
 *      └──it has none, or that was removed──`WarmAssigner`──▶ one of the warm pool
 *                                                 └──none fits──`FreshContainers`──▶ a fresh one
 */
export class Starter {
  readonly #containers: Containers;
  readonly #workspaces: () => Promise<WorkspaceOptions>;
  readonly #options: StarterOptions;
  readonly #adopter: Adopter;
  readonly #homes: SandboxHomes;
  readonly #connector: Connector;
  readonly #fresh: FreshContainers;
  readonly #images: RecentImages;
  #warm: WarmAssigner | undefined;

  constructor(
    engine: Engine,
    containers: Containers,
    workspaces: () => Promise<WorkspaceOptions>,
    options: StarterOptions,
  ) {
    this.#containers = containers;
    this.#workspaces = workspaces;
    this.#options = options;
    this.#adopter = new Adopter({ ...options, containers });
    this.#homes = new SandboxHomes({ ...options, workspaces });
    this.#connector = new Connector(options);
    this.#fresh = new FreshContainers({
      ...{ engine, containers, connector: this.#connector, initPath: options.initPath },
    });
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

  /** `known`: the facts of its image; absent: asked of the engine. */
  async #startOf(
    request: StartRequest,
    known: ImageFacts | undefined,
    { beforeFresh, ...call }: StartCall,
  ): Promise<Started> {
    const record = await this.#adopter.look(request);
    const reaching = record && this.#adopter.reach(record, call);
    // In parallel with what follows: most sandboxes have none, and the engine takes a moment to answer.
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
   * A worker that removes an older container of the sandbox unmounts the image, perhaps while this container starts. A container that
   * started without the image would see the empty directory beneath.
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

  /** Makes the folders that a sandbox begins with. Removes the container if init cannot make them. */
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
      await this.#adopter.discard(request, started.containerId, {}).catch(() => {});
      throw error;
    }
  }

  /** init ends everything in the container and confirms it; then any worker of this host may adopt it. False: init did not confirm it. */
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
    { reached, survivors }: EarlierContainers,
    image: ImageFacts,
    home: SandboxHome,
    call: CallOptions,
  ): Promise<Started | undefined> {
    const { config } = this.#plan(request, image, home);
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

  #started(
    request: StartRequest,
    { containerId, connection, config, home, how }: AnsweringContainer,
  ): Started {
    return {
      ...{ containerId, config, setUpPath: home.setUpPath, workspacePath: home.workspace.path },
      ...{ link: this.#connector.link(connection, request), imageEnv: home.imageEnv },
      origin: { ...how, link: connection.carrier, quota: home.quota },
    };
  }

  #plan(request: StartRequest, image: ImageFacts, home: SandboxHome): PlannedContainer {
    return planContainer(this.#options, request, image, home);
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
   * Assigns a warm container while the engine still looks for one of this sandbox's, which is rarely there. Nothing runs in the warm
   * one before the engine has answered; if the sandbox has one already, the warm one is removed. Undefined: not tried, as for a profile
   * with a set-up command.
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
    // Only a workspace and a link can be mounted later; other mounts, such as peers' files, a container has from its start.
    const isPlain = home.workspace.ownUid && home.shared.directories.length === 0;
    if (!this.#warm || !isPlain || !isWarmable(profile)) return undefined;
    const { config } = this.#plan(request, image, home);
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

  /** The shape of containers that fit any sandbox of that profile. Undefined: none can be started ahead of time. */
  async warmShapeOf(given: SandboxProfile, call: CallOptions): Promise<WarmShape | undefined> {
    if (!isWarmable(given)) return undefined;
    const { initPath, mountRoots } = this.#options;
    const base = await this.#images.facts(given.image, true, call);
    // The pool does not make the image. The first sandbox does, and gets the error if that fails.
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

  /** From now on, sandboxes get containers of the pool if one fits. */
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
    using _deferred = this.#warm?.pool.deferTo();
    const planned = this.#plan(request, image, home);
    return this.#started(request, await this.#fresh.start(request, planned, home, call));
  }
}
