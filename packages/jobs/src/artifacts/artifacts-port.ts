import type { ArtifactRef, ArtifactRefusal } from "@berth/protocol";

/**
 * Where one job's artifacts go, and what its conversation has persisted. A file over a limit is an answer; what is thrown is
 * a fault.
 */
export interface ArtifactsPort {
  /** Of one artifact. */
  readonly maxBytes: number;
  /** Reads the source unless it is clear before that the file would be refused. */
  keep(path: string, source: AsyncIterable<Uint8Array>, expectedBytes: number): Promise<KeepAnswer>;
  /** Later reads of the same conversation find it too. When it is refused, nothing is persisted at the path any more. */
  persist(path: string, bytes: Uint8Array): Promise<KeepAnswer>;
  /** By its id, whichever job of the same tenant kept it. */
  artifact(id: string): Promise<PersistedFile | undefined>;
  persisted(path: string): Promise<PersistedFile | undefined>;
  /** At a path and beneath it, by path; all for the empty path. */
  persistedBelow(path: string): Promise<readonly ArtifactRef[]>;
  /** What is no longer persisted. */
  forget(path: string, options: { readonly recursive: boolean }): Promise<readonly ArtifactRef[]>;
}

export type KeepAnswer = { readonly kept: ArtifactRef } | { readonly refused: ArtifactRefusal };

export interface PersistedFile {
  readonly ref: ArtifactRef;
  /** Bytes from `offset` on, `length` of them or up to the end. Throws `artifact-missing` when it has expired since. */
  stream(range: { readonly offset?: number; readonly length?: number }): Promise<AsyncIterable<Uint8Array>>;
}
