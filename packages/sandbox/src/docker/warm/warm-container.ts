import { randomBytes } from "node:crypto";
import type { FleetId, WorkerId } from "@berth/protocol";
import { Fault } from "@berth/protocol";
import { InitConnection } from "../../init/connection.ts";
import { AttachedStream } from "../attached-stream.ts";
import type { Containers } from "../containers.ts";
import { placeEtcFiles } from "../etc-files.ts";
import { warmLabel, writeLabels } from "../labels.ts";
import { allocateId, type WorkspaceOptions } from "../workspace.ts";
import type { Mounter } from "./mounter.ts";
import { type WarmShape, warmSpec } from "./warm-shape.ts";

export interface WarmMaker {
  readonly fleet: FleetId;
  readonly worker: WorkerId;
  readonly scope: string;
  readonly containers: Containers;
  readonly mounter: Mounter;
  readonly workspaces: WorkspaceOptions;
  readonly helloDeadlineMs: number;
}

/** init ends a waiting container when it has not heard from the worker for this long. */
const waitingLeaseMs = 60_000;

/**
 * A container that waits for its sandbox. init has answered, the mounter has its mount namespace, and nothing of a tenant is in it.
 *
 *   waiting ──release()──▶ its sandbox's
 *      └──it ends──▶ lost
 */
export class WarmContainer {
  readonly id: string;
  readonly shape: WarmShape;
  /** Also its slot in the mounter. */
  readonly number: number;
  readonly uid: number;
  readonly #connection: InitConnection;

  constructor(
    { id, shape, number, uid }: Pick<WarmContainer, "id" | "shape" | "number" | "uid">,
    connection: InitConnection,
  ) {
    this.id = id;
    this.shape = shape;
    this.number = number;
    this.uid = uid;
    this.#connection = connection;
  }

  /** Resolves when the container has ended or was released. */
  get closed(): Promise<unknown> {
    return this.#connection.closed;
  }

  /** Gives its stream to the sandbox's holder. Undefined: the container has ended. */
  release(): AttachedStream | undefined {
    const stream = this.#connection.release();
    return stream instanceof AttachedStream ? stream : undefined;
  }

  close(): void {
    this.#connection.close();
  }
}

/** `number`: unique among this worker's containers. Each number has a uid, so that the processes of two sandboxes are never counted together. */
export async function makeWarm(
  maker: WarmMaker,
  shape: WarmShape,
  number: number,
  signal: AbortSignal,
): Promise<WarmContainer> {
  const { fleet, worker, containers, mounter, workspaces } = maker;
  const uid = await allocateId(`warm ${number} of ${worker}`, workspaces);
  const user = `${uid}:${uid}`;
  const etcFiles = await placeEtcFiles({ workspacesRoot: workspaces.root, user, profile: shape.profile });
  const spec = warmSpec(shape, { workspace: { path: "/", user, ownUid: true, sharesUid: false }, etcFiles });
  const name = `berth-warm-${randomBytes(8).toString("hex")}`;
  const labels = writeLabels({ fleet, worker, sandboxKey: "", epoch: 0, config: shape.id });
  const id = await containers.create(
    { ...spec, name, Labels: { ...labels, ...warmLabel(maker.scope, number) } },
    { signal },
  );
  try {
    const [stream] = await Promise.all([containers.attach(id, { signal }), containers.start(id, { signal })]);
    const connection = new InitConnection(stream, {
      ...{ sandboxKey: name, waits: true, epoch: 0, leaseMs: waitingLeaseMs, resync: false },
      ...{ deadlineMs: maker.helloDeadlineMs, signal },
    });
    const { mountNamespace } = await connection.open();
    const found = await containers.find(id, { signal });
    if (!found?.running || mountNamespace === undefined)
      throw new Fault("sandbox-start-failed", {
        sandboxKey: name,
        detail: "the container ended before it could be used",
      });
    await mounter.open(number, found.pid, mountNamespace);
    return new WarmContainer({ id, shape, number, uid }, connection);
  } catch (error) {
    await containers.remove(id, {}).catch(() => {});
    throw error;
  }
}
