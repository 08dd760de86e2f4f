import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { initBinaryPath } from "@berth/init";
import {
  type FleetId,
  type QuotaBackend,
  quotaText,
  type SandboxKey,
  type SandboxProfile,
  sandboxKey,
  type WorkerId,
} from "@berth/protocol";
import type { Locale } from "../exec-environment.ts";
import type { Images } from "../images.ts";
import type {
  CallOptions,
  DriverReport,
  ParkedSandbox,
  ReapReport,
  Sandbox,
  SandboxDriver,
  SandboxRecord,
  StartRequest,
} from "../port.ts";
import type { Trees } from "../trees.ts";
import { Containers } from "./containers.ts";
import { DerivedImages } from "./derived-images.ts";
import { DiskFloor } from "./disk-floor.ts";
import { DockerImages } from "./docker-images.ts";
import { defaultEngineOptions, Engine } from "./engine.ts";
import { hasImage } from "./image.ts";
import { ImageNotes } from "./image-notes.ts";
import { removeLinkDirectory } from "./link-directory.ts";
import { ParkedContainers } from "./parked.ts";
import { type QuotaChoice, WorkspaceQuotas } from "./quota/workspace-quotas.ts";
import { RecentImages } from "./recent-images.ts";
import { DockerSandbox } from "./sandbox.ts";
import { forgetSetUp, setUpPath } from "./set-up.ts";
import { Starter, type StarterOptions } from "./starter.ts";
import { removeTeam } from "./team.ts";
import { DockerTrees } from "./trees/docker-trees.ts";
import { forgetOrigin } from "./trees/fork-origin.ts";
import { HostTool, isBtrfs } from "./trees/host-tool.ts";
import { TreeContainer } from "./trees/tree-container.ts";
import { Mounter } from "./warm/mounter.ts";
import type { WarmSizes } from "./warm/warm-plan.ts";
import { WarmPool, type WarmPoolOptions, type WarmReport } from "./warm/warm-pool.ts";
import { defaultUids, removeEmptyWorkspace, type UidRange } from "./workspace.ts";

export interface DockerDriverOptions extends Pick<StarterOptions, "onPull" | "onReplaced"> {
  readonly fleet: FleetId;
  readonly worker: WorkerId;
  /** Workers with the same host name adopt each other's parked containers. */
  readonly host?: string | undefined;
  /** Absolute, and the same path for the engine. Made if missing. */
  readonly workspacesRoot: string;
  /** Where the engine listens; its default socket when absent. */
  readonly engineHost?: string | undefined;
  readonly uids?: UidRange;
  /** Bytes of the workspaces' disk that must stay free; none when absent. */
  readonly diskFloorBytes?: number | undefined;
  /** What bounds new workspaces; default `walk`. */
  readonly quota?: QuotaBackend | undefined;
  /** Directories of the host beneath which profiles may mount; none when absent. */
  readonly mountRoots?: readonly string[];
  readonly initPath?: string;
  /** The worker's own LANG and TERM. */
  readonly locale?: Locale;
  readonly engineDeadlineMs?: number;
  readonly engineSlowDeadlineMs?: number;
  readonly helloDeadlineMs?: number;
  readonly fileDeadlineMs?: number;
  readonly pullDeadlineMs?: number;
  /** The warm pool; none when absent. */
  readonly warm?: WarmOptions | undefined;
  /** False: stdio carries everything, as where init cannot reach a socket of the host. */
  readonly unixLink?: boolean;
}

export interface WarmOptions extends Pick<WarmPoolOptions, "onState"> {
  readonly sizes: WarmSizes;
  /** The present profile of a job that names none. */
  readonly profile: () => SandboxProfile | undefined;
}

/** Sandboxes as containers of a Docker-compatible engine. */
export class DockerDriver implements SandboxDriver {
  readonly #options: DockerDriverOptions;
  readonly #engine: Engine;
  readonly #containers: Containers;
  readonly #starter: Starter;
  readonly #derived: DerivedImages;
  readonly #tool: HostTool;
  readonly trees: Trees;
  readonly #floor: DiskFloor;
  readonly #quotas: WorkspaceQuotas;
  readonly images: Images;
  #engineFacts: Promise<EngineFacts> | undefined;
  readonly #warm: WarmPool | undefined;
  #parkedContainers: ParkedContainers | undefined;

  constructor(options: DockerDriverOptions) {
    this.#options = options;
    this.#engine = new Engine({
      host: options.engineHost,
      deadlineMs: options.engineDeadlineMs ?? defaultEngineOptions.deadlineMs,
      slowDeadlineMs: options.engineSlowDeadlineMs ?? defaultEngineOptions.slowDeadlineMs,
    });
    this.#containers = new Containers(this.#engine);
    const { fleet, worker, workspacesRoot: root, initPath = initBinaryPath } = options;
    const pullDeadlineMs = options.pullDeadlineMs ?? 600_000;
    this.#tool = new HostTool(initPath);
    this.#quotas = new WorkspaceQuotas(root, options.quota ?? "walk", {
      tool: this.#tool,
      uids: options.uids ?? defaultUids,
    });
    const notes = new ImageNotes(root);
    this.images = new DockerImages({ engine: this.#engine, notes, pullDeadlineMs });
    this.#floor = new DiskFloor(root, options.diskFloorBytes ?? 0);
    this.#derived = new DerivedImages({ engine: this.#engine, notes, floor: this.#floor });
    this.trees = new DockerTrees({
      ...{ quotas: this.#quotas, floor: this.#floor },
      ...{ root, tool: this.#tool, workspaces: () => this.#workspaceOptions() },
      container: new TreeContainer({
        ...{ containers: this.#containers, fleet, worker, initPath },
        images: new RecentImages(this.#engine, { pullDeadlineMs, onPull: options.onPull }),
      }),
    });
    this.#starter = new Starter(this.#engine, this.#containers, () => this.#workspaceOptions(), {
      ...{ fleet, worker, initPath, pullDeadlineMs, notes, derived: this.#derived },
      helloDeadlineMs: options.helloDeadlineMs ?? 10_000,
      fileDeadlineMs: options.fileDeadlineMs ?? 30_000,
      mountRoots: options.mountRoots ?? [],
      onPull: options.onPull,
      onReplaced: options.onReplaced,
      unixLink: options.unixLink ?? true,
      parked: () => this.#parked(),
      ...{ quotas: this.#quotas, floor: this.#floor },
    });
    if (options.warm && options.warm.sizes.most > 0) this.#warm = this.#makePool(options.warm);
  }

  /** What the warm pool has; absent without one. */
  get warm(): WarmReport | undefined {
    return this.#warm?.report;
  }

  /** From now on the warm pool starts containers. */
  startWarming(): void {
    this.#warm?.start();
  }

  /** Removes the containers that wait for a sandbox. */
  async stopWarming(): Promise<void> {
    await this.#warm?.stop();
  }

  /** Why this host cannot have a warm pool: no workspace can be mounted in a running container. Undefined when it can. */
  async whyNotWarm(): Promise<string | undefined> {
    const { initPath = initBinaryPath, workspacesRoot } = this.#options;
    const mounter = new Mounter(initPath, nearestThere(workspacesRoot), () => {});
    try {
      if (process.getuid?.() !== 0) return "this user is not root";
      return (await this.#facts()).rootless ? "the engine runs without root" : await mounter.whyNot();
    } finally {
      mounter.stop();
    }
  }

  #makePool({ sizes, profile, onState }: WarmOptions): WarmPool {
    const { fleet, worker, initPath = initBinaryPath, helloDeadlineMs = 10_000 } = this.#options;
    const mounter = new Mounter(initPath, this.#options.workspacesRoot, () => pool.forget());
    const pool = new WarmPool({
      ...{ fleet, worker, containers: this.#containers, mounter, helloDeadlineMs, sizes, onState },
      parked: () => this.#parked(),
      workspaces: () => this.#workspaceOptions(),
      base: async (signal) => {
        const wanted = profile();
        return wanted && this.#starter.warmShapeOf(wanted, { signal });
      },
    });
    this.#starter.useWarm(pool, mounter, this.#options.workspacesRoot);
    return pool;
  }

  async check(options: CallOptions = {}): Promise<DriverReport> {
    const info = await this.#engine.call("engine info", () => this.#engine.docker.info(), options);
    return {
      engine: this.#engine.address,
      version: info.ServerVersion ?? "unknown",
      rootless: isRootless(info.SecurityOptions),
      cgroupVersion: info.CgroupVersion ?? "1",
      runtimes: Object.keys(info.Runtimes ?? {}),
    };
  }

  /** Whether the engine has the image. Nothing is pulled. */
  hasImage(image: string, { signal }: CallOptions = {}): Promise<boolean> {
    return hasImage(this.#engine, image, signal);
  }

  /** What bounds new workspaces of this host. */
  quota(): Promise<QuotaChoice> {
    return this.#quotas.choice();
  }

  /** Why no file of a sandbox may grow on this host; undefined while its disk has room. */
  async diskTrouble(): Promise<string | undefined> {
    const low = await this.#floor.low();
    return low && quotaText(low);
  }

  async start(request: StartRequest, options: CallOptions = {}): Promise<Sandbox> {
    return await DockerSandbox.open(
      {
        ...{ request, starter: this.#starter, containers: this.#containers, floor: this.#floor },
        locale: this.#options.locale,
      },
      options,
    );
  }

  /** The labels of a parked or adopted container may name another worker. Its note names the one that parked or holds it. */
  async list(options: CallOptions = {}): Promise<SandboxRecord[]> {
    const found = await this.#containers.list(this.#options.fleet, options);
    if (found.length === 0) return found;
    const notes = new Map((await (await this.#parked()).all()).map((one) => [one.containerId, one]));
    return found.map((record) => {
      const note = notes.get(record.id);
      if (!note) return record;
      const { key, worker, isParked } = note;
      return { ...record, key, worker, isParked, epoch: Math.max(record.epoch, note.epoch) };
    });
  }

  async parked(): Promise<readonly ParkedSandbox[]> {
    return (await this.#parked()).list();
  }

  async evict(key: SandboxKey): Promise<boolean> {
    return (await this.#parked()).evict(key, async (id) => {
      await this.#containers.remove(id, {});
      await this.#quotas.unmount(key);
    });
  }

  async reap(unwanted: (record: SandboxRecord) => boolean, options: CallOptions = {}): Promise<ReapReport> {
    const removed: SandboxRecord[] = [];
    const failed: { record: SandboxRecord; error: unknown }[] = [];
    const chosen = (await this.list(options)).filter(unwanted);
    await this.#derived.sweep(options);
    await Promise.all(
      chosen.map(async (record) => {
        try {
          await this.#containers.remove(record.id, options);
          removed.push(record);
        } catch (error) {
          failed.push({ record, error });
        }
      }),
    );
    await this.#unmountOf(removed, options);
    return { removed, failed };
  }

  /** Unmounts the workspace images of sandboxes that have no container any more. */
  async #unmountOf(removed: readonly SandboxRecord[], options: CallOptions): Promise<void> {
    if (removed.length === 0) return;
    const left = new Set((await this.list(options)).map(({ key }) => key));
    for (const { key } of removed) {
      const parsed = sandboxKey.safeParse(key);
      if (parsed.success && !left.has(key)) await this.#quotas.unmount(parsed.data);
    }
  }

  async removeEmptyWorkspace(key: SandboxKey): Promise<void> {
    await this.#quotas.removeEmpty(key);
    await removeEmptyWorkspace(key, this.#options.workspacesRoot);
    await removeLinkDirectory(key, this.#options.workspacesRoot);
    await removeTeam(key, this.#options.workspacesRoot);
    await forgetSetUp(setUpPath(key, this.#options.workspacesRoot));
    await forgetOrigin(key, this.#options.workspacesRoot);
  }

  async #parked(): Promise<ParkedContainers> {
    if (this.#parkedContainers) return this.#parkedContainers;
    const { workspacesRoot: root, fleet, worker, host = "local" } = this.#options;
    const { id } = await this.#facts();
    this.#parkedContainers ??= new ParkedContainers({ root, fleet, host, engine: id }, worker);
    return this.#parkedContainers;
  }

  async #workspaceOptions() {
    const { rootless } = await this.#facts();
    const { workspacesRoot: root, uids = defaultUids } = this.#options;
    return {
      root,
      uids,
      rootlessEngine: rootless,
      makeDirectory: (path: string) => this.#makeDirectory(path),
    };
  }

  /** On btrfs a workspace is a subvolume: it can be snapshotted as a whole. */
  async #makeDirectory(path: string): Promise<void> {
    const isVolume =
      (await isBtrfs(dirname(path))) &&
      (await this.#tool.volume("create", path).then(
        () => true,
        () => false,
      ));
    if (!isVolume) await mkdir(path, { mode: 0o700 });
  }

  /** Facts that do not change while the engine runs. */
  async #facts(): Promise<EngineFacts> {
    this.#engineFacts ??= this.#engine
      .call("engine info", () => this.#engine.docker.info(), {})
      .then((info) => ({ id: info.ID ?? "", rootless: isRootless(info.SecurityOptions) }));
    try {
      return await this.#engineFacts;
    } catch (error) {
      this.#engineFacts = undefined;
      throw error;
    }
  }
}

interface EngineFacts {
  readonly id: string;
  readonly rootless: boolean;
}

/** The workspaces' directory, or the nearest directory above in which it would be made. */
function nearestThere(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestThere(dirname(path));
}

function isRootless(securityOptions: unknown): boolean {
  return (
    Array.isArray(securityOptions) && securityOptions.some((option) => String(option).includes("rootless"))
  );
}
