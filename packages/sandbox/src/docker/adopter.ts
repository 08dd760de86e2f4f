import { Fault, isFault, type SandboxKey } from "@berth/protocol";
import type { Hello, InitConnection } from "../init/connection.ts";
import type { CallOptions, StartRequest } from "../port.ts";
import type { AttachedStream } from "./attached-stream.ts";
import type { ContainerFacts, Containers } from "./containers.ts";
import { KeptStreams } from "./kept-streams.ts";
import { containerName } from "./labels.ts";
import type { HeldContainer, ParkedContainer, ParkedContainers } from "./parked.ts";

export interface AdopterOptions {
  readonly fleet: string;
  readonly worker: string;
  readonly containers: Containers;
  readonly parked: () => Promise<ParkedContainers>;
  /** The sandbox had a container that could not be adopted. It was removed. */
  readonly onReplaced?: ((key: SandboxKey, why: string) => void) | undefined;
}

/** The spec that a container must have to be adopted, and how to connect to its init. */
export interface Wanted {
  readonly config: string;
  readonly connect: (
    stream: AttachedStream,
    options: { readonly resync: boolean },
  ) => Promise<{ readonly connection: InitConnection; readonly hello: Hello }>;
}

export interface AdoptedContainer {
  readonly containerId: string;
  readonly connection: InitConnection;
  readonly killedLeftovers: number;
  readonly watchdogFired: boolean;
}

/** A container of this sandbox's that is not parked. */
export interface Survivor extends Pick<ContainerFacts, "id" | "epoch" | "running" | "config"> {
  /** This worker's. */
  readonly isOurs: boolean;
}

/** A parked container. The worker attached to it while it prepared the sandbox's home. */
export interface Reached {
  readonly record: ParkedContainer;
  /** Undefined when the container is gone, or does not run. */
  readonly stream: AttachedStream | undefined;
}

/**
 * Finds the container that a sandbox had before.
 *
 *   parked on this host ──claimed, same config, answers hello──▶ adopted
 *   found by its name, or assigned ──this worker's, same config, answers hello──▶ adopted
 *   any other container of this sandbox ──▶ removed
 */
export class Adopter {
  readonly #options: AdopterOptions;
  readonly #kept = new KeptStreams();

  constructor(options: AdopterOptions) {
    this.#options = options;
  }

  /** The parked container of this sandbox on this host. Another worker may still claim it. */
  async look({ key }: StartRequest): Promise<ParkedContainer | undefined> {
    return (await this.#options.parked()).look(key);
  }

  /** Does not throw. */
  async reach(record: ParkedContainer, call: CallOptions): Promise<Reached> {
    const kept = this.#kept.take(record.containerId);
    if (kept) return { record, stream: kept };
    const { containers } = this.#options;
    // The engine attaches to a dead container too. Nothing would ever answer there.
    const [found, stream] = await Promise.all([
      containers.find(record.containerId, call).catch(() => undefined),
      containers.attach(record.containerId, call).catch(() => undefined),
    ]);
    if (found?.running) return { record, stream };
    stream?.destroy();
    return { record, stream: undefined };
  }

  /** Keeps the stream of a container that this process has just parked, in case it adopts the container again. */
  keep(containerId: string, stream: AttachedStream): void {
    this.#kept.keep(containerId, stream);
  }

  /** Undefined: there is none. Containers that could not be adopted were removed, so a fresh one can be made. */
  async adopt(
    request: StartRequest,
    reached: Reached | undefined,
    survivors: Promise<readonly Survivor[]> | undefined,
    wanted: Wanted,
    call: CallOptions,
  ): Promise<AdoptedContainer | undefined> {
    const claimed = await this.#claim(request, reached);
    if (!claimed) {
      const found = await (survivors ?? this.survivors(request, call));
      return this.#adoptSurvivor(request, found, wanted, call);
    }
    const { containerId, config } = claimed;
    const stream = reached?.record.containerId === containerId ? reached.stream : undefined;
    let why = stream ? "it is set up in another way" : "it does not run";
    if (stream && config === wanted.config) {
      const connect = () => wanted.connect(stream, { resync: false });
      const adopted = await this.#adopt(request, containerId, connect).catch(async (error: unknown) => {
        if (isFault(error, "aborted")) await this.discard(request, containerId, {}).catch(() => {});
        throw error;
      });
      if ("connection" in adopted) return adopted;
      why = adopted.why;
    }
    // Without the signal: claimed and left as it is, it would be neither parked nor in use.
    await this.discard(request, containerId, {});
    this.#options.onReplaced?.(request.key, why);
    return undefined;
  }

  /** Removes a container that this worker holds, and the note that it holds it. */
  async discard({ key }: Pick<StartRequest, "key">, containerId: string, call: CallOptions): Promise<void> {
    await this.#options.containers.remove(containerId, call);
    await (await this.#options.parked()).removed(key);
  }

  async #claim(request: StartRequest, reached: Reached | undefined): Promise<ParkedContainer | undefined> {
    if (!reached) return undefined;
    refuseLower(request, reached.record.epoch);
    return (await this.#options.parked()).claim(request.key);
  }

  async #adoptSurvivor(
    request: StartRequest,
    survivors: readonly Survivor[],
    wanted: Wanted,
    call: CallOptions,
  ): Promise<AdoptedContainer | undefined> {
    for (const one of survivors) refuseLower(request, one.epoch);
    const usable = survivors.find((one) => notUsable(one, wanted) === undefined);
    let why: string | undefined;
    for (const one of survivors) {
      if (one === usable) continue;
      why = notUsable(one, wanted);
      await this.discard(request, one.id, call);
    }
    if (usable) {
      const { containers } = this.#options;
      const connect = async () => wanted.connect(await containers.attach(usable.id, call), { resync: true });
      const adopted = await this.#adopt(request, usable.id, connect);
      if ("connection" in adopted) return adopted;
      why = adopted.why;
      await this.discard(request, usable.id, call);
    }
    if (why !== undefined) {
      await (await this.#options.parked()).forgetOthers(request.key);
      this.#options.onReplaced?.(request.key, why);
    }
    return undefined;
  }

  /** Claims of this host's workers on containers of the sandbox. */
  async claims({ key }: StartRequest): Promise<readonly HeldContainer[]> {
    return (await this.#options.parked()).held(key);
  }

  /** The sandbox's containers that are not parked: the one with its name, and those that workers of this host assigned to it. */
  async survivors({ key }: StartRequest, call: CallOptions): Promise<readonly Survivor[]> {
    const { containers, worker, fleet } = this.#options;
    const parked = await this.#options.parked();
    await parked.settled(key);
    const [named, claims] = await Promise.all([
      containers.find(containerName(fleet, key), call),
      parked.held(key),
    ]);
    const isClaimed = ({ id }: ContainerFacts) => claims.some(({ containerId }) => containerId === id);
    const assigned = claims
      .filter(({ containerId }) => containerId !== named?.id)
      .map(async (claim): Promise<Survivor> => {
        const found = await containers.find(claim.containerId, call);
        const isOurs = claim.worker === worker;
        return { id: claim.containerId, ...claim, isOurs, running: found?.running === true };
      });
    if (!named) return Promise.all(assigned);
    const isOurs = isClaimed(named)
      ? claims.some((one) => one.worker === worker && one.containerId === named.id)
      : named.worker === worker;
    return [{ ...named, isOurs }, ...(await Promise.all(assigned))];
  }

  /** `why`: the container does not answer as it should. The caller removes it. */
  async #adopt(
    request: StartRequest,
    containerId: string,
    connect: () => ReturnType<Wanted["connect"]>,
  ): Promise<AdoptedContainer | { readonly why: string }> {
    try {
      const { connection, hello } = await connect();
      await connection.killLeftovers(hello.running);
      const { running, watchdogFired } = hello;
      return { containerId, connection, killedLeftovers: running.length, watchdogFired };
    } catch (error) {
      if (isFault(error, "aborted")) throw error;
      // A process 1 that lies about epochs must not keep its sandbox from starting, so the lease decides.
      if (isFault(error, "fenced") && (await request.isHeld?.()) !== true) throw error;
      return { why: `it does not answer as it should: ${error instanceof Error ? error.message : error}` };
    }
  }
}

function notUsable(found: Survivor, { config }: Wanted): string | undefined {
  if (!found.isOurs) return "it was another worker's";
  if (!found.running) return "it does not run";
  return found.config === config ? undefined : "it is set up in another way";
}

function refuseLower({ key, epoch }: StartRequest, highestEpoch: number): void {
  if (highestEpoch > epoch) throw new Fault("fenced", { sandboxKey: key, epoch, highestEpoch });
}
