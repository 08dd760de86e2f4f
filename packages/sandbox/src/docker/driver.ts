import { initBinaryPath } from "@berth/init";
import type { FleetId, SandboxKey, WorkerId } from "@berth/protocol";
import type {
  CallOptions,
  DriverReport,
  ReapReport,
  Sandbox,
  SandboxDriver,
  SandboxRecord,
  StartRequest,
} from "../port.ts";
import { Containers } from "./containers.ts";
import { defaultEngineOptions, Engine } from "./engine.ts";
import { removeLinkDirectory } from "./link-directory.ts";
import { DockerSandbox } from "./sandbox.ts";
import { Starter, type StarterOptions } from "./starter.ts";
import { defaultUids, removeEmptyWorkspace, type UidRange } from "./workspace.ts";

export interface DockerDriverOptions extends Pick<StarterOptions, "onPull"> {
  readonly fleet: FleetId;
  readonly worker: WorkerId;
  /** Absolute, and the same path for the engine. Made if missing. */
  readonly workspacesRoot: string;
  /** Where the engine listens; its default socket when absent. */
  readonly engineHost?: string | undefined;
  readonly uids?: UidRange;
  /** Directories of the host beneath which profiles may mount; none when absent. */
  readonly mountRoots?: readonly string[];
  readonly initPath?: string;
  readonly engineDeadlineMs?: number;
  readonly engineSlowDeadlineMs?: number;
  readonly helloDeadlineMs?: number;
  readonly fileDeadlineMs?: number;
  readonly pullDeadlineMs?: number;
  /** False: stdio carries everything, as where a socket cannot be reached. */
  readonly unixLink?: boolean;
}

/** Sandboxes as containers of a Docker-compatible engine. */
export class DockerDriver implements SandboxDriver {
  readonly #options: DockerDriverOptions;
  readonly #engine: Engine;
  readonly #containers: Containers;
  readonly #starter: Starter;
  #rootless: Promise<boolean> | undefined;

  constructor(options: DockerDriverOptions) {
    this.#options = options;
    this.#engine = new Engine({
      host: options.engineHost,
      deadlineMs: options.engineDeadlineMs ?? defaultEngineOptions.deadlineMs,
      slowDeadlineMs: options.engineSlowDeadlineMs ?? defaultEngineOptions.slowDeadlineMs,
    });
    this.#containers = new Containers(this.#engine);
    this.#starter = new Starter(this.#engine, this.#containers, () => this.#workspaceOptions(), {
      fleet: options.fleet,
      worker: options.worker,
      initPath: options.initPath ?? initBinaryPath,
      helloDeadlineMs: options.helloDeadlineMs ?? 10_000,
      fileDeadlineMs: options.fileDeadlineMs ?? 30_000,
      pullDeadlineMs: options.pullDeadlineMs ?? 600_000,
      mountRoots: options.mountRoots ?? [],
      onPull: options.onPull,
      unixLink: options.unixLink ?? true,
    });
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

  async start(request: StartRequest, options: CallOptions = {}): Promise<Sandbox> {
    const started = await this.#starter.start(request, options);
    return new DockerSandbox(request, started, this.#starter, this.#containers);
  }

  async list(options: CallOptions = {}): Promise<SandboxRecord[]> {
    return this.#containers.list(this.#options.fleet, options);
  }

  async reap(unwanted: (record: SandboxRecord) => boolean, options: CallOptions = {}): Promise<ReapReport> {
    const removed: SandboxRecord[] = [];
    const failed: { record: SandboxRecord; error: unknown }[] = [];
    const chosen = (await this.list(options)).filter(unwanted);
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
    return { removed, failed };
  }

  async removeEmptyWorkspace(key: SandboxKey): Promise<void> {
    await removeEmptyWorkspace(key, this.#options.workspacesRoot);
    await removeLinkDirectory(key, this.#options.workspacesRoot);
  }

  async #workspaceOptions() {
    this.#rootless ??= this.check().then((report) => report.rootless);
    try {
      return {
        root: this.#options.workspacesRoot,
        uids: this.#options.uids ?? defaultUids,
        rootlessEngine: await this.#rootless,
      };
    } catch (error) {
      this.#rootless = undefined;
      throw error;
    }
  }
}

function isRootless(securityOptions: unknown): boolean {
  return (
    Array.isArray(securityOptions) && securityOptions.some((option) => String(option).includes("rootless"))
  );
}
