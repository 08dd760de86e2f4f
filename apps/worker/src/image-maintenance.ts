import { isFault } from "@berth/protocol";
import type { Images, PullProgress } from "@berth/sandbox";

export interface ImageMaintenanceOptions {
  readonly images: Images;
  /** The images of the profiles that this worker knows now. */
  readonly wanted: () => readonly string[];
  /** Images that Berth pulled and that are unused for this long are removed; 0: never. */
  readonly unusedForMs: number;
  readonly report: (event: ImageEvent) => void;
}

export type ImageEvent =
  | {
      readonly event: "image.pulling";
      readonly image: string;
      readonly doneBytes: number;
      readonly totalBytes: number;
    }
  | {
      readonly event: "image.pulled";
      readonly image: string;
      readonly ms: number;
      readonly pinned: string | undefined;
    }
  | { readonly event: "image.missing"; readonly image: string; readonly detail: string }
  | { readonly event: "image.removed"; readonly image: string };

/** Each look counts as a use of the profiles' images. */
const lookMs = 3_600_000;
/** The next look, if the engine or a registry was away. */
const againMs = 60_000;
const progressEveryMs = 5_000;

/** Pulls the profiles' images before a job needs them, and removes images that no sandbox has used for long. */
export class ImageMaintenance {
  readonly #options: ImageMaintenanceOptions;
  readonly #stopping = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #woken = Promise.withResolvers<void>();

  constructor(options: ImageMaintenanceOptions) {
    this.#options = options;
  }

  start(): void {
    this.#looking = this.#loop();
  }

  /** Call it when profiles may name other images. */
  lookSoon(): void {
    this.#woken.resolve();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.lookSoon();
    await this.#looking;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    const reported = new Set<string>();
    while (!signal.aborted) {
      let isWell = true;
      this.#woken = Promise.withResolvers<void>();
      for (const image of this.#options.wanted())
        if (!signal.aborted && !(await this.#ensure(image, reported))) isWell = false;
      await this.#prune().catch(() => {});
      if (!signal.aborted) await this.#pause(isWell ? lookMs : againMs);
    }
  }

  async #pause(ms: number): Promise<void> {
    const timer = setTimeout(() => this.lookSoon(), ms);
    await this.#woken.promise;
    clearTimeout(timer);
  }

  /** False: the image cannot be pulled now. Reported once. */
  async #ensure(image: string, reported: Set<string>): Promise<boolean> {
    const { images, report } = this.#options;
    const { signal } = this.#stopping;
    const begunMs = performance.now();
    let reportedAtMs = Number.NEGATIVE_INFINITY;
    const onPull = ({ doneBytes, totalBytes }: PullProgress) => {
      if (totalBytes === 0 || performance.now() - reportedAtMs < progressEveryMs) return;
      reportedAtMs = performance.now();
      report({ event: "image.pulling", image, doneBytes, totalBytes });
    };
    try {
      const { pulled, pinned } = await images.ensure(image, { signal, onPull });
      if (pulled)
        report({ event: "image.pulled", image, ms: Math.round(performance.now() - begunMs), pinned });
      reported.delete(image);
      return true;
    } catch (error) {
      if (!isFault(error)) throw error;
      if (!reported.has(image) && !signal.aborted)
        report({ event: "image.missing", image, detail: error.message });
      reported.add(image);
      return false;
    }
  }

  async #prune(): Promise<void> {
    const { images, unusedForMs, report } = this.#options;
    const { signal } = this.#stopping;
    if (unusedForMs === 0 || signal.aborted) return;
    for (const image of await images.prune(unusedForMs, { signal }))
      report({ event: "image.removed", image });
  }
}

/** Every image that a profile has, or lets layers below choose. */
export function imagesOf(
  profiles: Iterable<{
    readonly image?: string | undefined;
    readonly images?: readonly string[] | undefined;
  }>,
): string[] {
  const named = [...profiles].flatMap(({ image, images = [] }) => [
    ...(image === undefined ? [] : [image]),
    ...images,
  ]);
  return [...new Set(named)];
}
