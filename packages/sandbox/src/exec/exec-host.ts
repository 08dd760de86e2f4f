import type { Duplex } from "node:stream";
import { Fault } from "@berth/protocol";
import { abortable } from "../docker/abortable.ts";
import type { Engine } from "../docker/engine.ts";
import { refusedWith } from "../docker/engine-error.ts";
import { endFault } from "../init/connection.ts";
import type { LinkEnd } from "../link.ts";
import { ExecStream, type StreamListener } from "./exec-stream.ts";

export interface ExecHostOptions {
  readonly engine: Engine;
  readonly containerId: string;
  readonly sandboxKey: string;
  readonly epoch: number;
  /** Instead of the container's own. */
  readonly user?: string | undefined;
  /** Ends everything in the container and starts it again under the same id. */
  readonly restart: () => Promise<void>;
  /** For one file operation. */
  readonly deadlineMs: number;
}

export interface ExecSpec {
  readonly argv: readonly string[];
  readonly env?: readonly string[];
  readonly stdin: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Not after a restart: the process ids it was given mean others by then. */
  readonly generation?: number | undefined;
}

export interface OpenExec {
  readonly stream: ExecStream;
  /** Undefined while it runs; "gone" when the engine no longer knows it. */
  exitCode(): Promise<number | "gone" | undefined>;
}

/** Something that runs in the container on our behalf. */
export interface Guest {
  /** It comes and goes with the ending of another. */
  readonly isPartOfEnding?: boolean;
  /** Its process, which leads a session of its own; undefined until it has told. */
  readonly pid: number | undefined;
  /** Everything in the container is about to be killed. */
  onRestarting(): void;
  /** It is killed, and the container runs again. */
  onRestarted(): void;
  onClosed(end: LinkEnd): void;
}

/**
 * One running container as the engine's exec sees it: what we run in it, and its ends.
 *
 *   open ──restart()──▶ restarting ──started again──▶ open
 *    │                      └──failed──▶ closed
 *    └──close(), found dead──▶ closed
 */
export class ExecHost {
  readonly closed: Promise<LinkEnd>;
  readonly #settleClosed: (end: LinkEnd) => void;
  readonly options: ExecHostOptions;
  /** Out-of-memory kills that somebody has been told of. */
  oomKillsTold = 0;
  readonly #guests = new Set<Guest>();
  #generation = 0;
  #lastChangeMs = Number.NEGATIVE_INFINITY;
  #end: LinkEnd | undefined;
  #restarting: Promise<void> | undefined;

  constructor(options: ExecHostOptions) {
    const { promise, resolve } = Promise.withResolvers<LinkEnd>();
    this.closed = promise;
    this.#settleClosed = resolve;
    this.options = options;
  }

  get end(): LinkEnd | undefined {
    return this.#end;
  }

  /** Counts the restarts. */
  get generation(): number {
    return this.#generation;
  }

  /** Since a guest came or went, those of endings aside: only then can there be a process of ours that is not known. */
  get unchangedMs(): number {
    return performance.now() - this.#lastChangeMs;
  }

  get guests(): ReadonlySet<Guest> {
    return this.#guests;
  }

  /** Throws the fault of a closed host. */
  assertOpen(): void {
    if (this.#end) throw endFault(this.#end, this.options);
  }

  async open(spec: ExecSpec, guest: Guest, listener: StreamListener): Promise<OpenExec> {
    // Beginning what the restart would kill at once helps nobody.
    while (this.#restarting !== undefined) await this.#restarting;
    this.assertOpen();
    if (spec.generation !== undefined && spec.generation !== this.#generation) {
      throw new Fault("aborted", { operation: "an exec for a container that was restarted since" });
    }
    this.#guests.add(guest);
    this.#changed(guest);
    try {
      return await this.#start(spec, listener);
    } catch (error) {
      this.#guests.delete(guest);
      if (refusedWith(error, 404, 409) || refusedWith(error, 500)) await this.look();
      this.assertOpen();
      throw error;
    }
  }

  leave(guest: Guest): void {
    if (this.#guests.delete(guest)) this.#changed(guest);
  }

  #changed(guest: Guest): void {
    if (!guest.isPartOfEnding) this.#lastChangeMs = performance.now();
  }

  async #start(spec: ExecSpec, listener: StreamListener): Promise<OpenExec> {
    const { engine, containerId, user } = this.options;
    const { signal } = spec;
    const exec = await engine.call(
      "create exec",
      (abortSignal) =>
        engine.docker.getContainer(containerId).exec({
          Cmd: [...spec.argv],
          Env: [...(spec.env ?? [])],
          WorkingDir: "/",
          AttachStdin: spec.stdin,
          AttachStdout: true,
          AttachStderr: true,
          Tty: false,
          ...(user === undefined ? {} : { User: user }),
          abortSignal,
        }),
      { signal },
    );
    const socket = await engine.call(
      "start exec",
      (abortSignal) => exec.start(abortable(abortSignal, { hijack: true, stdin: spec.stdin })),
      { signal, discard: (late) => (late as Duplex).destroy() },
    );
    return {
      stream: new ExecStream(socket as unknown as Duplex, listener),
      exitCode: () => this.#exitCode(exec.id),
    };
  }

  async #exitCode(id: string): Promise<number | "gone" | undefined> {
    const { engine } = this.options;
    try {
      const facts = await engine.call("inspect exec", (abortSignal) =>
        engine.docker.getExec(id).inspect(abortable(abortSignal, {})),
      );
      return facts.Running ? undefined : (facts.ExitCode ?? "gone");
    } catch (error) {
      if (refusedWith(error, 404, 409)) return "gone";
      throw error;
    }
  }

  /** Whether the container still runs; the host closes if it does not. */
  async look(): Promise<boolean> {
    const { engine, containerId } = this.options;
    while (this.#restarting !== undefined) await this.#restarting;
    if (this.#end) return false;
    try {
      const facts = await engine.call("inspect container", (abortSignal) =>
        engine.docker.getContainer(containerId).inspect(abortable(abortSignal, {})),
      );
      if (facts.State.Running) return true;
      if (this.#restarting === undefined)
        this.close({
          why: "stream-ended",
          detail: `the container ended (exit code ${facts.State.ExitCode})`,
        });
    } catch (error) {
      if (!refusedWith(error, 404)) throw error;
      this.close({ why: "stream-ended", detail: "the container is gone" });
    }
    return false;
  }

  /** The only sure end of what an exec began: everything in the container goes. Never rejects; a failure closes the host. */
  restart(): Promise<void> {
    this.#restarting ??= this.#restart().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  async #restart(): Promise<void> {
    if (this.#end) return;
    const guests = [...this.#guests];
    for (const guest of guests) guest.onRestarting();
    this.#generation++;
    this.oomKillsTold = 0;
    try {
      await this.options.restart();
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      this.close({ why: "stream-ended", detail: `the container could not be restarted: ${detail}` });
      return;
    }
    for (const guest of guests) guest.onRestarted();
  }

  close(end: LinkEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#settleClosed(end);
    for (const guest of this.#guests) guest.onClosed(end);
    this.#guests.clear();
  }
}

/** An engine that does not answer leaves us blind; the command may run on. */
export function blindEnd(error: unknown): LinkEnd {
  if (error instanceof Fault && error.code === "engine-timeout") {
    return { why: "unresponsive", waitedMs: (error as Fault<"engine-timeout">).context.deadlineMs };
  }
  return { why: "stream-ended", detail: error instanceof Error ? error.message : String(error) };
}
