import { type ArtifactMeta, ArtifactReader, type ByteRange, DirectoryPlace } from "@berth/ledger";
import type { Redis } from "@berth/redis";

export interface ArtifactsOptions {
  /** The workers' artifact directory, where this process sees it. Without it only small artifacts can be fetched. */
  readonly directory?: string | undefined;
}

/**
 * What jobs left for others, by id. Undefined is: no such artifact, or not any more. Bytes in a directory that this process
 * does not see are the fault `artifact-elsewhere`; `meta` needs no directory.
 */
export class Artifacts {
  readonly #reader: ArtifactReader;

  /** @internal Its users get it from a `Berth`. */
  constructor(redis: Redis, { directory }: ArtifactsOptions = {}) {
    this.#reader = new ArtifactReader(
      redis,
      directory === undefined ? undefined : new DirectoryPlace(directory),
    );
  }

  meta(id: string): Promise<ArtifactMeta | undefined> {
    return this.#reader.meta(id);
  }

  /** All of it at once, checked against its hash. */
  bytes(id: string): Promise<Buffer | undefined> {
    return this.#reader.bytes(id);
  }

  /** As it is read, from the beginning or a range of it. */
  stream(id: string, range: Partial<ByteRange> = {}): Promise<AsyncIterable<Uint8Array> | undefined> {
    return this.#reader.stream(id, range);
  }
}
