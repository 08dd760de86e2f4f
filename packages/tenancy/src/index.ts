export type { AttemptRecord } from "./attempt-record.ts";
export { checkedSandbox } from "./kinds/checked-sandbox.ts";
export type { RunContext } from "./kinds/run-context.ts";
export { runRequest } from "./kinds/run-request.ts";
export type {
  KeepAnswer,
  RunnerArtifacts,
  RunnerCall,
  RunnerExecOptions,
  RunnerFileContent,
  RunnerFiles,
  RunnerGrepOptions,
  RunnerListing,
  RunnerPersisted,
  RunnerReadOptions,
  RunnerSandbox,
  RunnerWriteOptions,
} from "./ports.ts";
export type { TenancyEnd, TenancyOptions } from "./tenancy.ts";
export { Tenancy } from "./tenancy.ts";
export type {
  Clock,
  EndedAttempt,
  EventsPort,
  FetchedJob,
  JobsPort,
  LaterPort,
  LeasePort,
  OpenSandbox,
  OutputPiece,
  PlacementPort,
  Progress,
  PublishResult,
  SandboxPort,
  SandboxRequest,
  TenancyEvent,
  TenancyPorts,
  TurnsPort,
} from "./tenancy-ports.ts";
export { unlessAborted } from "./unless-aborted.ts";
