import type { JobRequestInput, JobResult, Outcome, Scope } from "@berth/protocol";

/** The sandbox of a server's jobs. The person who configures the server sets it; a model cannot change it. */
export interface SandboxAddress {
  readonly tenant: string;
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly scope?: Scope | undefined;
  readonly profile?: string | undefined;
  readonly pool?: string | undefined;
}

export interface Order extends SandboxAddress {
  readonly request: JobRequestInput;
}

/** The part of a job's events that is shown. `id` is where to resume. */
export type FollowedEvent = { readonly id: string } & (
  | { readonly type: "stdout" | "stderr"; readonly bytes: Uint8Array }
  | { readonly type: "finished"; readonly result: JobResult }
  | { readonly type: "retrying"; readonly outcome: Outcome }
  | { readonly type: "started" | "artifact" | "file" }
);

export interface FollowedJob {
  /** The id that the caller knows. */
  readonly id: string;
  /** Its events until its end, from the beginning or after an event id. The signal ends the reading, not the job. */
  events(after: string, signal: AbortSignal): AsyncIterable<FollowedEvent>;
  status(): Promise<"scheduled" | "waiting" | "running" | "finished">;
  cancel(): Promise<void>;
}

export interface FoundJob extends FollowedJob {
  /** Key of the job's sandbox. */
  readonly sandbox: string;
}

export interface SandboxState {
  /** Whether a worker has it ready; a gateway hides this from tenant keys. */
  readonly held: boolean;
  /** Waiting and running jobs. */
  readonly unfinished: number;
  readonly paused: boolean;
  readonly lastUsedMs: number;
}

export interface FetchedArtifact {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly mime?: string | undefined;
}

/** Why a call failed, for the agent. */
export interface Explained {
  readonly message: string;
  readonly code?: string | undefined;
  /** What to do, one line each. */
  readonly advice: readonly string[];
}

/** The fleet as the tools use it. The CLI and the gateway implement it. */
export interface FleetPort {
  submit(order: Order): Promise<FollowedJob>;
  /** Undefined: no such job, or the caller may not see it. */
  find(id: string): Promise<FoundJob | undefined>;
  /** Undefined: no such sandbox, or it is not among the tenant's most recently used ones. */
  sandbox(tenant: string, key: string): Promise<SandboxState | undefined>;
  /** Undefined: no such artifact, or it has expired. */
  artifact(id: string): Promise<FetchedArtifact | undefined>;
  /**
   * Resolves when no worker can start the job's sandbox; with undefined when the job starts or ends, or the signal fires. Absent:
   * calls wait.
   */
  noSandbox?(id: string, signal: AbortSignal): Promise<Explained | undefined>;
  explain(error: unknown): Explained;
}
