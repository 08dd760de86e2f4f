import type { CallOptions } from "../port.ts";
import type { Engine } from "./engine.ts";
import { ensureImage, type ImageFacts, type ImageOptions } from "./image.ts";
import type { ImageNotes } from "./image-notes.ts";

/** Sandboxes with parked containers notice after this long that an image was replaced under its name. */
const recentMs = 2_000;

export interface RecentImagesOptions extends Pick<ImageOptions, "pullDeadlineMs" | "onPull"> {
  readonly notes?: ImageNotes | undefined;
}

interface Looked {
  readonly facts: ImageFacts;
  readonly atMs: number;
}

/** Caches the engine's answers about images: under pressure a worker adopts many parked containers of one image in a second. */
export class RecentImages {
  readonly #engine: Engine;
  readonly #options: RecentImagesOptions;
  readonly #looked = new Map<string, Looked>();

  constructor(engine: Engine, options: RecentImagesOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /** Asks the engine, unless a cached answer is recent enough. */
  async facts(image: string, mayBeRecent: boolean, { signal }: CallOptions): Promise<ImageFacts> {
    const known = this.#looked.get(image);
    if (mayBeRecent && known && performance.now() - known.atMs < recentMs) return known.facts;
    const { notes, pullDeadlineMs, onPull } = this.#options;
    const onPulled = async () => notes?.used(image, { pulled: true });
    const facts = await ensureImage(this.#engine, image, { pullDeadlineMs, onPull, onPulled, signal });
    void notes?.used(image, { pulled: false });
    for (const [name, { atMs }] of this.#looked)
      if (performance.now() - atMs >= recentMs) this.#looked.delete(name);
    this.#looked.set(image, { facts, atMs: performance.now() });
    return facts;
  }
}
