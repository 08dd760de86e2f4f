import { Fault, isFault } from "@berth/protocol";
import { abortable } from "./abortable.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";

export interface PullProgress {
  readonly image: string;
  readonly status: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface ImageFacts {
  readonly id: string;
  readonly volumes: readonly string[];
  /** Its ENV, each as `NAME=value`. */
  readonly env: readonly string[];
}

export interface ImageOptions {
  readonly signal?: AbortSignal | undefined;
  readonly pullDeadlineMs: number;
  readonly onPull?: ((progress: PullProgress) => void) | undefined;
  /** Pull even if the engine has an image of that name. */
  readonly again?: boolean;
  readonly onPulled?: (() => Promise<void>) | undefined;
}

/** The facts of an image. Pulls it first if it is missing. */
export async function ensureImage(engine: Engine, image: string, options: ImageOptions): Promise<ImageFacts> {
  try {
    if (options.again !== true) return await inspectImage(engine, image, options.signal);
  } catch (error) {
    if (!refusedWith(error, 404)) throw error;
  }
  try {
    await pullImage(engine, image, options);
    await options.onPulled?.();
    return await inspectImage(engine, image, options.signal);
  } catch (error) {
    if (!isFault(error) || isFault(error, "aborted") || isFault(error, "engine-unreachable")) throw error;
    throw new Fault("image-missing", { image, detail: error.message }, { cause: error });
  }
}

/** Whether the engine has it. Nothing is pulled. */
export async function hasImage(engine: Engine, image: string, signal?: AbortSignal): Promise<boolean> {
  try {
    await inspectImage(engine, image, signal);
    return true;
  } catch (error) {
    if (refusedWith(error, 404)) return false;
    throw error;
  }
}

async function inspectImage(
  engine: Engine,
  image: string,
  signal: AbortSignal | undefined,
): Promise<ImageFacts> {
  const found = await engine.call(
    "inspect image",
    (abortSignal) => engine.docker.getImage(image).inspect(abortable(abortSignal, {})),
    { signal },
  );
  const { Volumes, Env } = found.Config ?? {};
  return { id: found.Id, volumes: Object.keys(Volumes ?? {}), env: Env ?? [] };
}

async function pullImage(engine: Engine, image: string, options: ImageOptions): Promise<void> {
  const layers = new Map<string, { done: number; total: number }>();
  const onEvent = (event: PullEvent) => {
    const { id, status = "", progressDetail } = event;
    if (id !== undefined && progressDetail?.total) {
      layers.set(id, { done: progressDetail.current ?? 0, total: progressDetail.total });
    }
    const sum = (pick: "done" | "total") => [...layers.values()].reduce((all, layer) => all + layer[pick], 0);
    options.onPull?.({ image, status, doneBytes: sum("done"), totalBytes: sum("total") });
  };
  await engine.call(
    "pull image",
    async (abortSignal) => {
      const stream = await engine.docker.pull(image, abortable(abortSignal, {}));
      await new Promise<void>((resolve, reject) =>
        engine.docker.modem.followProgress(
          stream,
          (error) => (error ? reject(pullError(error)) : resolve()),
          onEvent,
        ),
      );
    },
    { signal: options.signal, deadlineMs: options.pullDeadlineMs },
  );
}

interface PullEvent {
  readonly id?: string;
  readonly status?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** An error in the progress stream has no HTTP status. The engine did answer, so it counts as refused. */
function pullError(error: Error): Fault {
  return new Fault(
    "engine-refused",
    { call: "pull image", status: 500, detail: error.message },
    { cause: error },
  );
}
