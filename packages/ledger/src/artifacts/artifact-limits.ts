export interface ArtifactLimits {
  /** Up to this size the bytes are in Redis; larger ones are in the place. */
  readonly inRedisBytes: number;
  /** Of one artifact. */
  readonly maxBytes: number;
  readonly maxPerJob: number;
  /** Of one tenant, each artifact counted by its size. */
  readonly quotaBytes: number;
  /** Of one tenant: what a description takes in Redis is not in its size. */
  readonly quotaCount: number;
  readonly keptMs: number;
  readonly persistedMs: number;
  /** Of one conversation. */
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
