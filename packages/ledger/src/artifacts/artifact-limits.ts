export interface ArtifactLimits {
  /** Up to this size the bytes are in Redis; larger ones are in the byte store. */
  readonly inRedisBytes: number;
  /** Largest size of one artifact. */
  readonly maxBytes: number;
  readonly maxPerJob: number;
  /** All artifacts of one tenant, each counted by its size. */
  readonly quotaBytes: number;
  /** Number of artifacts of one tenant: their descriptions take room in Redis, which sizes do not count. */
  readonly quotaCount: number;
  readonly keptMs: number;
  readonly persistedMs: number;
  /** Number of files that one conversation may persist. */
  readonly maxPersisted: number;
}

const dayMs = 24 * 3_600_000;

export const defaultArtifactLimits: ArtifactLimits = {
  inRedisBytes: 64 * 1024,
  maxBytes: 64 * 1024 * 1024,
  maxPerJob: 100,
  quotaBytes: 1024 * 1024 * 1024,
  quotaCount: 100_000,
  keptMs: 7 * dayMs,
  persistedMs: 30 * dayMs,
  maxPersisted: 1_000,
};
