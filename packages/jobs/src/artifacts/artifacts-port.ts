import type { ArtifactRef, ArtifactRefusal } from "@berth/protocol";

/**
 * Stores one job's artifacts and its conversation's persisted files. Answers for a file over a limit; throws a fault if the store
 * fails.
 */
export interface ArtifactsPort {
  /** Of one artifact. */
  readonly maxBytes: number;
  /** Does not read the source if the file will be refused anyway. */
  keep(path: string, source: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<KeepAnswer>;
  /** Later reads of the same conversation find it. If it is refused, nothing stays persisted at the path. */
  persist(path: string, bytes: Uint8Array): Promise<KeepAnswer>;
  /** By id, from any job of the same tenant. */
  artifact(id: string): Promise<PersistedFile | undefined>;
  persisted(path: string): Promise<PersistedFile | undefined>;
  /** At a path and beneath it, by path; all for the empty path. */
  persistedBelow(path: string): Promise<readonly ArtifactRef[]>;
  /** Paths that are no longer persisted. */
  forget(path: string, options: { readonly recursive: boolean }): Promise<readonly ArtifactRef[]>;
}

export type KeepAnswer = { readonly kept: ArtifactRef } | { readonly refused: ArtifactRefusal };

export interface PersistedFile {
  readonly ref: ArtifactRef;
  /** Bytes from `offset` on, `length` of them or up to the end. Throws `artifact-missing` when it has expired since. */
  stream(range: { readonly offset?: number; readonly length?: number }): Promise<AsyncIterable<Uint8Array>>;
}
