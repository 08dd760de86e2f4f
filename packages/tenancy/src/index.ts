export type { AttemptRecord } from "./attempt-record.ts";
export { LeaseOver } from "./lease-over.ts";
export { Tenancy } from "./tenancy.ts";
export type { TenancyEvent } from "./tenancy-event.ts";
export type { TenancyBounds, TenancyEnd, TenancyOptions } from "./tenancy-options.ts";
export type {
  Beginner,
  Clock,
  ClosingHow,
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
  TenancyPorts,
  TurnsPort,
} from "./tenancy-ports.ts";
export { unlessAborted } from "./unless-aborted.ts";
