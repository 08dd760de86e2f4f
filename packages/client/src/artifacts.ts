import { type ArtifactMeta, ArtifactReader, type ByteRange, DirectoryStore } from "@berth/ledger";
import type { Redis } from "@berth/redis";

export interface ArtifactsOptions {
  /** The workers' artifact directory, if this process can read it. Without it only small artifacts can be fetched. */
  readonly directory?: string | undefined;
}

/**
 * Files that jobs kept, by id. Undefined: no such artifact, or it has expired. If this process cannot read the directory with the
 * bytes, reading throws the fault `artifact-elsewhere`; `meta` needs no directory.
 */
export class Artifacts {
  readonly #reader: ArtifactReader;

  /** @internal Use `berth.artifacts`. */
  constructor(redis: Redis, { directory }: ArtifactsOptions = {}) {
    this.#reader = new ArtifactReader(
      redis,
      directory === undefined ? undefined : new DirectoryStore(directory),
    );
  }

  meta(id: string): Promise<ArtifactMeta | undefined> {
    return this.#reader.meta(id);
  }

  /** The whole artifact, checked against its hash. */
  bytes(id: string): Promise<Buffer | undefined> {
    return this.#reader.bytes(id);
  }

  /** A stream of the artifact, or of a range of it. */
  stream(id: string, range: Partial<ByteRange> = {}): Promise<AsyncIterable<Uint8Array> | undefined> {
    return this.#reader.stream(id, range);
  }
}
