import { access } from "node:fs/promises";
import { Fault, isFault } from "@berth/protocol";
import type { CallOptions, StartRequest } from "../port.ts";
import type { AttachedStream } from "./attached-stream.ts";
import type { Connector } from "./connector.ts";
import type { Containers } from "./containers.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { placeEtcFiles } from "./etc-files.ts";
import { clearLinkDirectory } from "./link-directory.ts";
import type { PlannedContainer } from "./planned-container.ts";
import type { SandboxHome } from "./sandbox-home.ts";
import type { AnsweringContainer } from "./started.ts";
import { unmetField } from "./unmet-field.ts";

export interface FreshContainersParts {
  readonly engine: Engine;
  readonly containers: Containers;
  readonly connector: Connector;
  readonly initPath: string;
}

/** How runtimes report that init was built for another machine. */
const foreignWords = /exec format error/i;
const killedCode = 137;

/**
 * Creates and starts containers.
 *
 *   create ──▶ attach and start, side by side ──▶ hello ──▶ answering
 *                  └──it died before stderr was attached──▶ once more: attach, then start
 *
 * A container that does not get as far as hello is removed.
 */
export class FreshContainers {
  readonly #parts: FreshContainersParts;

  constructor(parts: FreshContainersParts) {
    this.#parts = parts;
  }

  async start(
    request: StartRequest,
    planned: PlannedContainer,
    home: SandboxHome,
    call: CallOptions,
  ): Promise<AnsweringContainer> {
    const { containers, initPath } = this.#parts;
    await access(initPath).catch((cause) => {
      throw new Fault("init-missing", { path: initPath }, { cause });
    });
    await Promise.all([clearLinkDirectory(home.linkDirectory), placeEtcFiles(home.etcInput)]);
    const start = (id: string) => containers.start(id, call);
    const attach = (id: string) => containers.attach(id, call);
    try {
      // The engine handles both at once, so that attaching does not make the start later.
      return await this.#startAttached(request, planned, home, call, async (id) => {
        const [stream] = await Promise.all([attach(id), start(id)]);
        return stream;
      });
    } catch (error) {
      if (!(error instanceof DiedAtOnce)) throw error;
    }
    try {
      return await this.#startAttached(request, planned, home, call, async (id) => {
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
    { spec, config }: PlannedContainer,
    home: SandboxHome,
    call: CallOptions,
    attachAndStart: (id: string) => Promise<AttachedStream>,
  ): Promise<AnsweringContainer> {
    const { containers, connector } = this.#parts;
    const containerId = await this.#create(request, spec, call);
    try {
      const stream = await attachAndStart(containerId);
      const { connection } = await connector.connect(request, stream, home, { resync: false, ...call });
      const how = { how: "started", killedLeftovers: 0, watchdogFired: false } as const;
      return { containerId, connection, config, home, how };
    } catch (error) {
      const cause = await this.#whyNotStarted(error, containerId, request);
      await containers.remove(containerId, {}).catch(() => {});
      throw cause;
    }
  }

  async #create(request: StartRequest, spec: PlannedContainer["spec"], call: CallOptions): Promise<string> {
    const { engine, containers } = this.#parts;
    try {
      return await containers.create(spec, call);
    } catch (error) {
      const { runtime } = request.profile;
      if (runtime !== undefined && refusedWith(error, 400) && /runtime/i.test((error as Error).message)) {
        const info = await engine.call("engine info", () => engine.docker.info(), call);
        throw new Fault(
          "runtime-missing",
          { runtime, available: Object.keys(info.Runtimes ?? {}).join(", ") },
          { cause: error },
        );
      }
      throw startFault(error, request);
    }
  }

  /** Distinguishes an init that was built for another machine from a container that failed otherwise. */
  async #whyNotStarted(error: unknown, containerId: string, request: StartRequest): Promise<unknown> {
    if (!isFault(error, "engine-refused") && !isFault(error, "sandbox-start-failed")) return error;
    const { detail } = error.context;
    // The runtime reports it to the engine or on the container's stderr, depending on how far it got.
    if (foreignWords.test(detail)) return new Fault("init-foreign", { path: this.#parts.initPath, detail });
    if (isFault(error, "engine-refused")) return startFault(error, request);
    const found = await this.#parts.containers.find(containerId, {}).catch(() => undefined);
    // One that was killed, for memory or by hand, wrote no message that a second try could catch.
    if (!found || found.running || found.oomKilled || found.exitCode === killedCode) return error;
    const why = { sandboxKey: request.key, detail: `${detail} (exit code ${found.exitCode})` };
    return new DiedAtOnce(new Fault("sandbox-start-failed", why, { cause: error }));
  }
}

/** The container ended by itself, perhaps with a message on stderr before the worker was attached. */
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
