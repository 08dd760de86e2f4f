import { getSystemErrorMap } from "node:util";
import { Fault } from "@berth/protocol";
import { egressPort, goesOut } from "../exec-environment.ts";
import { InitConnection } from "../init/connection.ts";
import { InitLink } from "../init/link.ts";
import { LinkListener } from "../init/link-listener.ts";
import type { CallOptions, StartRequest } from "../port.ts";
import type { AttachedStream } from "./attached-stream.ts";
import type { SandboxHome } from "./sandbox-home.ts";
import { openWayOut } from "./way-out.ts";

export interface ConnectorOptions {
  readonly helloDeadlineMs: number;
  readonly fileDeadlineMs: number;
  /** Whether to try a unix socket. */
  readonly unixLink: boolean;
}

/** Connects to the init of an attached container: HELLO, the unix link, and the way out for egress. */
export class Connector {
  readonly #options: ConnectorOptions;

  constructor(options: ConnectorOptions) {
    this.#options = options;
  }

  async connect(
    request: StartRequest,
    stream: AttachedStream,
    home: SandboxHome,
    { resync, signal, after }: CallOptions & { readonly resync: boolean; readonly after?: Promise<void> },
  ) {
    await using listener = await this.#listen(request, home);
    await after;
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
    const hello = await connection.open();
    try {
      await this.#openWayOut(request, home, connection);
    } catch (error) {
      connection.close();
      throw error;
    }
    return { connection, hello };
  }

  /** Opened before this holder starts any command. Closed with the connection. */
  async #openWayOut(
    { profile, wayOut }: StartRequest,
    home: SandboxHome,
    connection: InitConnection,
  ): Promise<void> {
    if (!wayOut || !goesOut(profile)) return;
    try {
      const close = await openWayOut(this.#linkPlace(home), wayOut.onConnection);
      void connection.closed.then(close);
    } catch (error) {
      throw new Fault("egress-unavailable", { detail: (error as Error).message }, { cause: error });
    }
    const errno = await connection.forward(egressPort);
    if (errno === 0) return;
    const why =
      errno === undefined
        ? "init did not answer"
        : (getSystemErrorMap().get(-errno)?.[1] ?? `errno ${errno}`);
    const detail = `no connection from the sandbox reaches the worker's socket (${why})`;
    throw new Fault("egress-unavailable", { detail });
  }

  #linkPlace({ workspace, linkDirectory }: SandboxHome) {
    const [uid = 0, gid = 0] = workspace.user.split(":").map(Number);
    return { directory: linkDirectory, owner: workspace.ownUid ? { uid, gid } : undefined };
  }

  /** Undefined where this worker cannot listen. stdio then carries everything. */
  async #listen({ epoch }: StartRequest, home: SandboxHome) {
    if (!this.#options.unixLink) return undefined;
    return LinkListener.open(this.#linkPlace(home), epoch).catch(() => undefined);
  }

  link(connection: InitConnection, request: StartRequest): InitLink {
    return new InitLink(connection, {
      sandboxKey: request.key,
      epoch: request.epoch,
      deadlineMs: this.#options.fileDeadlineMs,
    });
  }
}
