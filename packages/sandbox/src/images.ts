import type { PullProgress } from "./docker/image.ts";
import type { CallOptions } from "./port.ts";

/** An image that sandboxes of this host were, or may be, made of. */
export interface HostImage {
  readonly image: string;
  /** Berth has pulled it, so Berth may remove it. */
  readonly pulled: boolean;
  readonly usedAtMs: number;
  /** Undefined: the engine does not have it. */
  readonly bytes: number | undefined;
  /** The name with a digest, `NAME@sha256:…`, which always means this image. Undefined: it came from no registry. */
  readonly pinned: string | undefined;
}

export interface PulledImage {
  readonly id: string;
  readonly pinned: string | undefined;
  /** False: the engine had it. */
  readonly pulled: boolean;
}

/** The images of this host's engine, as far as sandboxes have to do with them. */
export interface Images {
  /** Pulls it if it is missing, or in any case with `again`. Throws `image-missing`. */
  ensure(
    image: string,
    options?: CallOptions & {
      readonly again?: boolean;
      readonly onPull?: ((progress: PullProgress) => void) | undefined;
    },
  ): Promise<PulledImage>;
  /** By name. */
  list(options?: CallOptions): Promise<readonly HostImage[]>;
  /** Removes images that Berth has pulled and that no sandbox was made of for so long, unless a container uses them. Returns their names. */
  prune(unusedForMs: number, options?: CallOptions): Promise<readonly string[]>;
}
