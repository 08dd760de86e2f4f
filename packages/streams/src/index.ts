export type { ArtifactLimits } from "./artifacts/artifact-limits.ts";
export { defaultArtifactLimits } from "./artifacts/artifact-limits.ts";
export type { ArtifactMeta } from "./artifacts/artifact-reader.ts";
export { ArtifactReader } from "./artifacts/artifact-reader.ts";
export type {
  ArtifactHolder,
  ArtifactOwner,
  PutAnswer,
  PutOptions,
  SweepReport,
} from "./artifacts/artifact-store.ts";
export { ArtifactStore } from "./artifacts/artifact-store.ts";
export type { BytePlace, ByteRange } from "./artifacts/byte-place.ts";
export { DirectoryPlace } from "./artifacts/directory-place.ts";
export { JobArtifacts } from "./artifacts/job-artifacts.ts";
export { mimeOf } from "./artifacts/mime.ts";
export type {
  Begun,
  Cancelled,
  JobEvent,
  JobProgress,
  Publication,
  Published,
  QueueKeys,
  WaitingJob,
} from "./job-events.ts";
export { JobEvents, readEvent } from "./job-events.ts";
export type { StagedRequest } from "./staging.ts";
export { Staging } from "./staging.ts";
