import type { HostImage, Images, PulledImage } from "../images.ts";
import type { CallOptions } from "../port.ts";
import { abortable } from "./abortable.ts";
import type { Engine } from "./engine.ts";
import { refusedWith } from "./engine-error.ts";
import { ensureImage, type ImageOptions } from "./image.ts";
import type { ImageNotes } from "./image-notes.ts";

export interface DockerImagesParts {
  readonly engine: Engine;
  readonly notes: ImageNotes;
  readonly pullDeadlineMs: number;
}

interface Inspected {
  readonly id: string;
  readonly bytes: number;
  readonly pinned: string | undefined;
}

/** The engine's images, as far as the notes know that a sandbox was made of them. */
export class DockerImages implements Images {
  readonly #parts: DockerImagesParts;

  constructor(parts: DockerImagesParts) {
    this.#parts = parts;
  }

  async ensure(
    image: string,
    { signal, again = false, onPull }: Parameters<Images["ensure"]>[1] = {},
  ): Promise<PulledImage> {
    const { engine, notes, pullDeadlineMs } = this.#parts;
    const before = again ? undefined : await this.#inspect(image, { signal });
    const options: ImageOptions = { signal, pullDeadlineMs, onPull, again };
    if (!before) await ensureImage(engine, image, options);
    await notes.used(image, { pulled: !before });
    const found = before ?? (await this.#inspect(image, { signal }));
    return { id: found?.id ?? "", pinned: found?.pinned, pulled: !before };
  }

  async list(options: CallOptions = {}): Promise<HostImage[]> {
    const noted = await this.#parts.notes.list();
    return await Promise.all(
      noted.map(async (note) => {
        const found = await this.#inspect(note.image, options);
        return { ...note, bytes: found?.bytes, pinned: found?.pinned };
      }),
    );
  }

  async prune(unusedForMs: number, options: CallOptions = {}): Promise<string[]> {
    const removed: string[] = [];
    for (const { image, pulled, usedAtMs } of await this.#parts.notes.list()) {
      if (!pulled || Date.now() - usedAtMs < unusedForMs) continue;
      if (!(await this.#remove(image, options))) continue;
      await this.#parts.notes.forget(image);
      removed.push(image);
    }
    return removed;
  }

  /** False: a container uses it. True also when it is gone already. */
  async #remove(image: string, options: CallOptions): Promise<boolean> {
    const { engine } = this.#parts;
    try {
      await engine.call(
        "remove image",
        (abortSignal) => engine.docker.getImage(image).remove(abortable(abortSignal, {})),
        options,
      );
      return true;
    } catch (error) {
      if (refusedWith(error, 409)) return false;
      if (refusedWith(error, 404)) return true;
      throw error;
    }
  }

  async #inspect(image: string, options: CallOptions): Promise<Inspected | undefined> {
    const { engine } = this.#parts;
    try {
      const { Id, Size, RepoDigests } = await engine.call(
        "inspect image",
        (abortSignal) => engine.docker.getImage(image).inspect(abortable(abortSignal, {})),
        options,
      );
      const digests: readonly string[] = RepoDigests ?? [];
      const repository = repositoryOf(image);
      const pinned = digests.find((digest) => digest.startsWith(`${repository}@`)) ?? digests[0];
      return { id: Id, bytes: Size, pinned };
    } catch (error) {
      if (refusedWith(error, 404)) return undefined;
      throw error;
    }
  }
}

/** Removes the tag or digest. A colon before a slash belongs to a port. */
function repositoryOf(image: string): string {
  return image.replace(/@.*$/, "").replace(/:[^:/]*$/, "");
}
