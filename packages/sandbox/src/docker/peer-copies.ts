import { join } from "node:path";
import { BoundedWait, Fault, sandboxKey, type TenantId, teamDirectory } from "@berth/protocol";
import type { CallOptions, StartRequest } from "../port.ts";
import { copySnapshot, emptySnapshot, type SnapshotReport } from "../team-snapshot.ts";
import type { Containers } from "./containers.ts";
import type { DiskFloor } from "./disk-floor.ts";
import { containerName } from "./labels.ts";
import { removeLinkDirectory } from "./link-directory.ts";
import type { SandboxHome } from "./sandbox-home.ts";
import type { Started } from "./started.ts";
import { copierRequest, hasWorkspace, writeReports } from "./team.ts";
import type { WorkspaceOptions } from "./workspace.ts";

/** For one peer. Files that are not copied by then are left out. */
const snapshotMs = 60_000;

export interface PeerCopiesOptions {
  readonly fleet: string;
  readonly containers: Containers;
  readonly workspaces: () => Promise<WorkspaceOptions>;
  readonly floor: Pick<DiskFloor, "whileRoom">;
  /** Starts a container for that request alone, with another sandbox's workspace mounted. */
  readonly start: (
    copier: StartRequest,
    workspaceOf: StartRequest["key"],
    call: CallOptions,
  ) => Promise<Started>;
}

/** Copies peers' files into the directory that a sandbox has at /team. */
export class PeerCopies {
  readonly #options: PeerCopiesOptions;

  constructor(options: PeerCopiesOptions) {
    this.#options = options;
  }

  /** Copies one peer after the other, each in a container. Files that cannot be copied do not keep the sandbox from starting. */
  async copy(
    request: StartRequest,
    { shared, peers }: Pick<SandboxHome, "shared" | "peers">,
    call: CallOptions,
  ): Promise<void> {
    const team = shared.directories.find(({ target }) => target === teamDirectory);
    if (!team) return;
    const reports = new Map<TenantId, SnapshotReport>();
    for (const peer of peers) {
      const report = await this.#withRoom(request, { peer, target: join(team.source, peer) }, call);
      reports.set(peer, report);
      request.onSnapshot?.(peer, report);
    }
    await writeReports(team.source, reports);
  }

  /** On a disk that is nearly full the copy is empty, or ends early. */
  async #withRoom(
    request: StartRequest,
    from: { readonly peer: TenantId; readonly target: string },
    { signal }: CallOptions,
  ): Promise<SnapshotReport> {
    const full = Symbol("full");
    try {
      return await this.#options.floor.whileRoom(
        signal,
        () => full,
        (room) => this.#copyPeer(request, from, { signal, room }),
      );
    } catch (error) {
      if (error !== full) throw error;
      return { ...(await emptySnapshot(from.target)), cut: true };
    }
  }

  /** The peer's own user reads the files, in a container in which only init runs: the host opens no path of a tenant's. */
  async #copyPeer(
    request: StartRequest,
    { peer, target }: { readonly peer: TenantId; readonly target: string },
    { signal, room }: CallOptions & { readonly room: AbortSignal },
  ): Promise<SnapshotReport> {
    const { fleet, containers, workspaces, start } = this.#options;
    const { root } = await workspaces();
    const source = sandboxKey.parse(peer);
    if (!(await hasWorkspace(source, root))) return await emptySnapshot(target);
    const { teamBytes: bytes, teamEntries: entries } = request.profile.limits;
    const copier = copierRequest(request, peer);
    const left = await containers.find(containerName(fleet, copier.key), { signal });
    if (left) await containers.remove(left.id, { signal });
    const { link, containerId } = await start(copier, source, { signal });
    try {
      using wait = new BoundedWait().endWith(room).endAfter(snapshotMs);
      const options = { bounds: { bytes, entries }, signal: wait.signal };
      const report = await copySnapshot(link.files, target, options);
      if (signal?.aborted) throw new Fault("aborted", { operation: "copying a peer's files" });
      return report;
    } finally {
      link.close();
      await containers.remove(containerId, {}).catch(() => {});
      await removeLinkDirectory(copier.key, root);
    }
  }
}
