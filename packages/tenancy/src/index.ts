export type { RunContext } from "./kinds/run-context.ts";
export { runRequest } from "./kinds/run-request.ts";
export type {
  RunnerCall,
  RunnerExecOptions,
  RunnerFileContent,
  RunnerFiles,
  RunnerGrepOptions,
  RunnerListing,
  RunnerReadOptions,
  RunnerSandbox,
  RunnerWriteOptions,
} from "./ports.ts";
export type { TenancyEnd, TenancyOptions } from "./tenancy.ts";
export { Tenancy } from "./tenancy.ts";
export type {
  Clock,
  EventsPort,
  FetchedJob,
  JobsPort,
  LeasePort,
  OutputPiece,
  PublishResult,
  SandboxPort,
  TenancyEvent,
  TenancyPorts,
} from "./tenancy-ports.ts";
