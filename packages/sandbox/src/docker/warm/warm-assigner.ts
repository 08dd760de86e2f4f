import { relative } from "node:path";
import { isFault, workspaceDirectory } from "@berth/protocol";
import type { InitConnection } from "../../init/connection.ts";
import type { StartRequest } from "../../port.ts";
import type { AttachedStream } from "../attached-stream.ts";
import { linkMountPath } from "../container-shape.ts";
import type { ParkedContainers } from "../parked.ts";
import type { WorkspaceHome } from "../workspace.ts";
import type { Mounter, WarmMount } from "./mounter.ts";
import type { WarmContainer } from "./warm-container.ts";
import type { WarmPool } from "./warm-pool.ts";
import type { WarmShape } from "./warm-shape.ts";

export interface WarmAssignerOptions {
  readonly pool: WarmPool;
  readonly mounter: Mounter;
  readonly parked: () => Promise<ParkedContainers>;
  /** The folder of the workspaces, which the mounter has too. */
  readonly root: string;
  /** Removes the container, and the note that it is the sandbox's. */
  readonly discard: (request: StartRequest, containerId: string) => Promise<void>;
}

/** The sandbox that is to get a container. */
export interface Assignment {
  readonly request: StartRequest;
  /** The config that a fresh container would have, so that the sandbox's next holder adopts this one. */
  readonly config: string;
  readonly workspace: WorkspaceHome;
  readonly linkDirectory: string;
  readonly signal: AbortSignal | undefined;
  /** Sends HELLO once `mounted` has resolved. */
  readonly connect: (stream: AttachedStream, mounted: Promise<void>) => Promise<InitConnection>;
}

export interface Assigned {
  readonly containerId: string;
  readonly connection: InitConnection;
}

/**
 * Gives a container of the pool to a sandbox.
 *
 *   taken ──noted as this sandbox's──▶ held ──workspace and link mounted──▶ mounted ──HELLO with the key──▶ assigned
 *
 * If a step fails, the container is removed and the sandbox gets an ordinary one. A worker that dies leaves a container that serves no
 * sandbox and ends by itself, or one that is noted as the sandbox's, which the next holder adopts or removes.
 */
export class WarmAssigner {
  readonly pool: WarmPool;
  readonly #options: WarmAssignerOptions;

  constructor(options: WarmAssignerOptions) {
    this.pool = options.pool;
    this.#options = options;
  }

  /** Undefined: none is ready, or it could not be assigned. */
  async assign(shape: WarmShape, assignment: Assignment): Promise<Assigned | undefined> {
    const container = this.pool.take(shape);
    if (!container) return undefined;
    const { request, connect, signal } = assignment;
    const stream = container.release();
    // A worker whose lease is over must not mount the workspace.
    if (!stream || (request.leaseLeftMs?.() ?? 1) <= 0) {
      await this.#giveUp(container, request);
      return undefined;
    }
    const mounted = this.#mount(container, assignment);
    try {
      const connection = await connect(stream, mounted);
      this.pool.reached();
      return { containerId: container.id, connection };
    } catch (error) {
      const problem = await mounted.then(
        () => undefined,
        (cause: unknown) => cause,
      );
      stream.destroy();
      await this.#giveUp(container, request);
      if (signal?.aborted || isFault(error, "fenced") || isFault(error, "egress-unavailable")) throw error;
      // Any other failure concerns this container or this sandbox, and an ordinary container is tried.
      if (problem !== undefined)
        this.pool.failed(problem instanceof Error ? problem.message : String(problem));
      return undefined;
    }
  }

  async #mount(container: WarmContainer, assignment: Assignment): Promise<void> {
    const { request, config, workspace, linkDirectory } = assignment;
    const { mounter, parked, root } = this.#options;
    const { key, epoch, profile } = request;
    // Before the mount, so that the container is known as this sandbox's even if this worker dies.
    await (await parked()).hold({ containerId: container.id, key, epoch, config, memoryBytes: 0 });
    const access = profile.workspace === "ro" ? "ro" : "rw";
    const mounts: WarmMount[] = [
      { name: relative(root, workspace.path), target: workspaceDirectory, access },
      { name: relative(root, linkDirectory), target: linkMountPath, access: "ro" },
    ];
    const onDisk = Number(workspace.user.split(":")[0]);
    await mounter.mount(container.number, { onDisk, inside: container.uid, mounts });
  }

  async #giveUp(container: WarmContainer, request: StartRequest): Promise<void> {
    await this.#options.mounter.close(container.number);
    await this.#options.discard(request, container.id).catch(() => {});
    this.pool.unserved();
  }
}
