import { Fault } from "@berth/protocol";
import type Docker from "dockerode";
import type { SandboxRecord } from "../port.ts";
import { abortable } from "./abortable.ts";
import { AttachedStream } from "./attached-stream.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { label, readRecord, readWarmLabel } from "./labels.ts";

export interface ContainerFacts extends SandboxRecord {
  readonly running: boolean;
  readonly oomKilled: boolean;
  readonly exitCode: number;
  readonly config: string;
  /** Of process 1, on the engine's host. */
  readonly pid: number;
}

/** A container of the warm pool. */
export interface WarmFacts {
  readonly id: string;
  readonly worker: string;
  readonly scope: string;
  readonly number: number;
  readonly state: string;
  readonly createdAtMs: number;
}

interface Call {
  readonly signal?: AbortSignal | undefined;
}

/** The engine's calls about one container, each with its deadline. */
export class Containers {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async create(spec: Docker.ContainerCreateOptions, call: Call): Promise<string> {
    const created = await this.#engine.call(
      "create container",
      // Without the signal: after an abort the engine would still create the container, and no worker would know its id.
      () => this.#engine.docker.createContainer(spec),
      {
        deadlineMs: this.#engine.slowDeadlineMs,
        discard: (late) => this.#removeLate(late as Docker.Container),
      },
    );
    if (call.signal?.aborted) {
      await this.remove(created.id, {});
      throw new Fault("aborted", { operation: "create container" }, { cause: call.signal.reason });
    }
    return created.id;
  }

  async start(id: string, call: Call): Promise<void> {
    await this.#engine.call(
      "start container",
      (abortSignal) => this.#engine.docker.getContainer(id).start(abortable(abortSignal, {})),
      { ...call, deadlineMs: this.#engine.slowDeadlineMs },
    );
  }

  async attach(id: string, call: Call): Promise<AttachedStream> {
    const socket = await this.#engine.call(
      "attach to container",
      (abortSignal) =>
        this.#engine.docker
          .getContainer(id)
          .attach(
            abortable(abortSignal, { stream: true, stdin: true, stdout: true, stderr: true, hijack: true }),
          ),
      { ...call, discard: (late) => (late as NodeJS.ReadWriteStream & { destroy(): void }).destroy() },
    );
    return new AttachedStream(socket as unknown as import("node:stream").Duplex);
  }

  /** Undefined when the engine has no container of that name or id. */
  async find(nameOrId: string, call: Call): Promise<ContainerFacts | undefined> {
    try {
      const found = await this.#engine.call(
        "inspect container",
        (abortSignal) => this.#engine.docker.getContainer(nameOrId).inspect(abortable(abortSignal, {})),
        call,
      );
      const labels = found.Config.Labels ?? {};
      return {
        ...readRecord(found.Id, labels, found.State.Status),
        running: found.State.Running && !found.State.Paused,
        oomKilled: found.State.OOMKilled,
        exitCode: found.State.ExitCode,
        config: labels[label.config] ?? "",
        pid: found.State.Pid,
      };
    } catch (error) {
      if (refusedWith(error, 404)) return undefined;
      throw error;
    }
  }

  /** Removes it in any state, with its anonymous volumes. Idempotent. */
  async remove(id: string, call: Call): Promise<void> {
    try {
      await this.#engine.call(
        "remove container",
        (abortSignal) =>
          this.#engine.docker.getContainer(id).remove(abortable(abortSignal, { force: true, v: true })),
        { ...call, deadlineMs: this.#engine.slowDeadlineMs },
      );
    } catch (error) {
      if (refusedWith(error, 404)) return;
      if (!refusedWith(error, 409)) throw error;
      await this.#untilGone(id, call);
    }
  }

  /** Without `Engine.call`: after calls that were late, its breaker may let none through. */
  #removeLate(container: Docker.Container): void {
    const deadline = AbortSignal.timeout(this.#engine.slowDeadlineMs);
    container.remove(abortable(deadline, { force: true, v: true })).catch(() => {});
  }

  async list(fleet: string, call: Call): Promise<SandboxRecord[]> {
    const found = await this.#engine.call(
      "list containers",
      (abortSignal) =>
        this.#engine.docker.listContainers(
          abortable(abortSignal, { all: true, filters: { label: [`${label.fleet}=${fleet}`] } }),
        ),
      call,
    );
    return found.map((one) => readRecord(one.Id, one.Labels, one.State));
  }

  async listWarm(fleet: string, call: Call): Promise<WarmFacts[]> {
    const wanted = [`${label.fleet}=${fleet}`, label.warm];
    const found = await this.#engine.call(
      "list containers",
      (abortSignal) =>
        this.#engine.docker.listContainers(abortable(abortSignal, { all: true, filters: { label: wanted } })),
      call,
    );
    return found.map(({ Id, Labels, State, Created }) => ({
      ...readWarmLabel(Labels[label.warm]),
      ...{ id: Id, worker: Labels[label.worker] ?? "", state: State, createdAtMs: Created * 1_000 },
    }));
  }

  /** Waits, for a bounded time, until the process that removes the container has done so. */
  async #untilGone(id: string, call: Call): Promise<void> {
    const deadline = performance.now() + this.#engine.slowDeadlineMs;
    while (performance.now() < deadline) {
      if ((await this.find(id, call)) === undefined) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Fault("engine-timeout", { call: "remove container", deadlineMs: this.#engine.slowDeadlineMs });
  }
}
