import { BoundedWait, Fault, type Outcome, setUpOutputBytes, setUpReport } from "@berth/protocol";
import type Docker from "dockerode";
import { HeadTailBuffer } from "../output/head-tail-buffer.ts";
import type { CallOptions } from "../port.ts";
import { abortable } from "./abortable.ts";
import { Containers } from "./containers.ts";
import type { DerivedImage, FailedBuild } from "./derived-images.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { checkedSetUp } from "./set-up.ts";
import { StdioDemux } from "./stdio-demux.ts";

/** For an image of a few gigabytes on a slow disk. */
const commitMs = 180_000;
/** The builder works until this time at most; later it must have died. In milliseconds since 1970. */
const untilLabel = "berth.set-up-until";
/** No container of a sandbox has this prefix, in any fleet. */
const namePrefix = "berth.set-up.";

export interface BuildRequest {
  readonly spec: Docker.ContainerCreateOptions;
  readonly timeoutMs: number;
}

/**
 * Makes an image with a command. The container's name is the lock: the engine has at most one of a name, for all workers.
 *
 *   claimed ──command ends with 0──▶ committed ──▶ removed
 *      │  └──it fails, or takes too long──▶ removed
 *      └──its builder died──▶ removed by a worker that waits for it, or by one that starts
 */
export class DerivedBuild {
  readonly #engine: Engine;
  readonly #containers: Containers;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#containers = new Containers(engine);
  }

  async find(name: string, call: CallOptions): Promise<DerivedImage | undefined> {
    try {
      const found = await this.#engine.call(
        "inspect image",
        (abortSignal) => this.#engine.docker.getImage(name).inspect(abortable(abortSignal, {})),
        call,
      );
      const { Volumes, Env } = found.Config ?? {};
      const facts = { id: found.Id, volumes: Object.keys(Volumes ?? {}), env: Env ?? [] };
      return { name, facts, report: reportIn(found.Comment, Date.parse(found.Created)) };
    } catch (error) {
      if (refusedWith(error, 404)) return undefined;
      throw error;
    }
  }

  /** Makes the image, unless another worker is making it: then waits for that one. */
  async make(name: string, request: BuildRequest, call: CallOptions): Promise<DerivedImage | FailedBuild> {
    await this.sweep(call);
    for (;;) {
      const known = await this.find(name, call);
      if (known) return known;
      const containerName = `${namePrefix}${name.slice(name.indexOf(":") + 1)}`;
      const id = await this.#claim(containerName, request, call);
      if (id === undefined) {
        await this.#untilOver(containerName, call);
        continue;
      }
      try {
        // Another worker may have made it between the look and the claim.
        return (await this.find(name, call)) ?? (await this.#run(id, name, request, call));
      } finally {
        await this.#containers.remove(id, {});
      }
    }
  }

  async sweep(call: CallOptions): Promise<void> {
    const found = await this.#engine.call(
      "list containers",
      (abortSignal) =>
        this.#engine.docker.listContainers(
          abortable(abortSignal, { all: true, filters: { name: [namePrefix] } }),
        ),
      call,
    );
    // Also by name: a container has the labels of its image, so sandboxes of a derived image have this label.
    const late = found.filter(
      ({ Names, Labels }) =>
        Names.some((name) => name.startsWith(`/${namePrefix}`)) && Number(Labels[untilLabel]) < Date.now(),
    );
    await Promise.all(late.map(({ Id }) => this.#containers.remove(Id, call)));
  }

  /** Undefined: there is a container of that name already. */
  async #claim(
    name: string,
    { spec, timeoutMs }: BuildRequest,
    call: CallOptions,
  ): Promise<string | undefined> {
    const until = Date.now() + timeoutMs + commitMs + this.#engine.slowDeadlineMs;
    try {
      return await this.#containers.create({ ...spec, name, Labels: { [untilLabel]: String(until) } }, call);
    } catch (error) {
      if (refusedWith(error, 409)) return undefined;
      throw error;
    }
  }

  async #run(
    id: string,
    name: string,
    { timeoutMs }: BuildRequest,
    call: CallOptions,
  ): Promise<DerivedImage | FailedBuild> {
    const begunMs = performance.now();
    await this.#containers.start(id, call);
    const isOver = await this.#ended(id, "not-running", timeoutMs, call);
    const wallMs = Math.round(performance.now() - begunMs);
    const ended = { output: await this.#output(id, call), wallMs };
    const outcome = isOver
      ? await this.#outcome(id, call)
      : { kind: "timed-out" as const, afterMs: timeoutMs };
    if (outcome.kind !== "exited" || outcome.code !== 0) return { ...ended, outcome };
    await this.#commit(id, name, JSON.stringify(checkedSetUp("", { ...ended, outcome })), call);
    const made = await this.find(name, call);
    if (made) return made;
    throw new Fault("engine-refused", {
      call: "commit",
      status: 404,
      detail: `${name} was removed right after it was made`,
    });
  }

  async #commit(id: string, name: string, comment: string, call: CallOptions): Promise<void> {
    const [repo, tag] = name.split(":");
    await this.#engine.call(
      "commit container",
      (abortSignal) =>
        this.#engine.docker
          .getContainer(id)
          .commit(abortable(abortSignal, { _query: { container: id, repo, tag, comment }, _body: {} })),
      { ...call, deadlineMs: commitMs },
    );
  }

  async #outcome(id: string, call: CallOptions): Promise<Outcome> {
    const found = await this.#inspect(id, call);
    // Also if the command went on without the process that was killed.
    if (found?.State.OOMKilled) return { kind: "out-of-memory", limitBytes: found.HostConfig.Memory ?? 0 };
    return { kind: "exited", code: found?.State.ExitCode ?? 1 };
  }

  async #output(id: string, call: CallOptions) {
    const bytes = await this.#engine.call(
      "read output",
      (abortSignal) =>
        this.#engine.docker
          .getContainer(id)
          .logs(abortable(abortSignal, { stdout: true, stderr: true, follow: false as const })),
      call,
    );
    const kept = new HeadTailBuffer(setUpOutputBytes);
    new StdioDemux((stream, chunk) => kept.add(stream, chunk)).push(Buffer.from(bytes));
    return kept.finish();
  }

  /** Waits until the other worker's container is gone, or its builder must have died. */
  async #untilOver(name: string, call: CallOptions): Promise<void> {
    const found = await this.#inspect(name, call);
    if (!found) return;
    const leftMs = Math.max(1, Number(found.Config.Labels[untilLabel]) - Date.now() || 1);
    if (await this.#ended(name, "not-running", leftMs, call))
      await this.#ended(name, "removed", Math.min(leftMs, commitMs + this.#engine.slowDeadlineMs), call);
    await this.#containers.remove(name, call);
  }

  async #inspect(id: string, call: CallOptions): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await this.#engine.call(
        "inspect container",
        (abortSignal) => this.#engine.docker.getContainer(id).inspect(abortable(abortSignal, {})),
        call,
      );
    } catch (error) {
      if (refusedWith(error, 404)) return undefined;
      throw error;
    }
  }

  /** False: it took longer than `ms`. A container that is gone has ended. */
  async #ended(
    id: string,
    condition: "not-running" | "removed",
    ms: number,
    { signal }: CallOptions,
  ): Promise<boolean> {
    using wait = new BoundedWait().endWith(signal).endAfter(ms);
    try {
      await this.#engine.call(
        "wait for container",
        (abortSignal) => this.#engine.docker.getContainer(id).wait(abortable(abortSignal, { condition })),
        { signal: wait.signal, deadlineMs: ms + this.#engine.slowDeadlineMs },
      );
      return true;
    } catch (error) {
      if (wait.isLate && signal?.aborted !== true) return false;
      if (refusedWith(error, 404)) return true;
      throw error;
    }
  }
}

/** The report that the builder wrote into the image's comment. */
function reportIn(comment: unknown, endedAtMs: number): DerivedImage["report"] {
  try {
    return setUpReport.parse(JSON.parse(String(comment)));
  } catch {
    return { ok: true, how: "exited 0", output: "", endedAtMs, wallMs: 0 };
  }
}
