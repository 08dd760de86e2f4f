export type { DockerDriverOptions } from "./docker/driver.ts";
export { DockerDriver } from "./docker/driver.ts";
export type { PullProgress } from "./docker/image.ts";
export type { UidRange } from "./docker/workspace.ts";
export { probeWorkspaces } from "./docker/workspace.ts";
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
  MoveOptions,
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
