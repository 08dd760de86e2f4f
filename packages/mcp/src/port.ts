import type { JobRequestInput, JobResult, Outcome, Scope } from "@berth/protocol";

/** Where a server's jobs go. The person who configures the server sets it; a model cannot change it. */
export interface Place {
  readonly tenant: string;
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly scope?: Scope | undefined;
  readonly profile?: string | undefined;
  readonly pool?: string | undefined;
}

export interface Order extends Place {
  readonly request: JobRequestInput;
}

/** What of a job's events is shown. `id` is where to go on reading. */
export type FollowedEvent = { readonly id: string } & (
  | { readonly type: "stdout" | "stderr"; readonly bytes: Uint8Array }
  | { readonly type: "finished"; readonly result: JobResult }
  | { readonly type: "retrying"; readonly outcome: Outcome }
  | { readonly type: "started" | "artifact" | "file" }
);

export interface FollowedJob {
  /** As the caller names it. */
  readonly id: string;
  /** Its events until its end, from the beginning or behind an event's id. The signal ends the reading, not the job. */
  events(after: string, signal: AbortSignal): AsyncIterable<FollowedEvent>;
  status(): Promise<"scheduled" | "waiting" | "running" | "finished">;
  cancel(): Promise<void>;
}

export interface FoundJob extends FollowedJob {
  /** Key of the sandbox that it runs in. */
  readonly sandbox: string;
}

export interface SandboxState {
  /** A worker is known to have it ready; a gateway hides it from tenant keys. */
  readonly held: boolean;
  /** Jobs that wait or run. */
  readonly unfinished: number;
  readonly paused: boolean;
  readonly lastUsedMs: number;
}

export interface FetchedArtifact {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly mime?: string | undefined;
}

/** Why a call failed, in words for the agent. */
export interface Explained {
  readonly message: string;
  readonly code?: string | undefined;
  /** What to do about it, one line each. */
  readonly advice: readonly string[];
}

/** The fleet as the tools need it. The command line and the gateway bring their own. */
export interface FleetPort {
  submit(order: Order): Promise<FollowedJob>;
  /** Undefined: no such job, or not one that the caller may see. */
  find(id: string): Promise<FoundJob | undefined>;
  /** Undefined: there is no such sandbox, or it is not among those that the tenant used last. */
  sandbox(tenant: string, key: string): Promise<SandboxState | undefined>;
  /** Undefined: no such artifact, or not any more. */
  artifact(id: string): Promise<FetchedArtifact | undefined>;
  /**
   * Resolves when it is clear that no worker starts the job's sandbox; undefined when the job has begun or ended, or the signal fires.
   * Absent: calls wait.
   */
  noSandbox?(id: string, signal: AbortSignal): Promise<Explained | undefined>;
  explain(error: unknown): Explained;
}
