export { diskOf } from "./docker/disk.ts";
export type { DockerDriverOptions, WarmOptions } from "./docker/driver.ts";
export { DockerDriver } from "./docker/driver.ts";
export type { PullProgress } from "./docker/image.ts";
export type { QuotaChoice } from "./docker/quota/workspace-quotas.ts";
export type { WarmSizes } from "./docker/warm/warm-plan.ts";
export type { WarmReport } from "./docker/warm/warm-pool.ts";
export type { UidRange } from "./docker/workspace.ts";
export { probeWorkspaces } from "./docker/workspace.ts";
export type { Locale } from "./exec-environment.ts";
export type { HostImage, Images, PulledImage } from "./images.ts";
export type {
  CallOptions,
  DriverReport,
  ExecOptions,
  FileContent,
  FileStat,
  GlobOptions,
  GrepListing,
  GrepOptions,
  Listing,
  ListOptions,
  MakeDirectoryOptions,
  ManyRead,
  MoveOptions,
  OutputFilter,
  OutputPart,
  ParkedSandbox,
  ReadEntry,
  ReadOptions,
  ReapReport,
  RemoveOptions,
  Sandbox,
  SandboxDriver,
  SandboxFiles,
  SandboxOrigin,
  SandboxRecord,
  SandboxStats,
  SizedStream,
  StartRequest,
  StatOptions,
  WriteOptions,
  WrittenFile,
} from "./port.ts";
export type { SnapshotReport } from "./team-snapshot.ts";
export type { TakenTree, TreeOnDisk, TreeOrigin, TreeOwner, Trees } from "./trees.ts";
