import type {
  ArtifactRef,
  Conversation,
  DeadReason,
  ExecLimits,
  Job,
  JobResult,
  JobValue,
  Outcome,
  SandboxRequest,
  WorkspaceRequest,
  WrittenFile,
} from "@berth/protocol";
import type { TenancyEvent } from "./tenancy-event.ts";
import type { TenancyBounds } from "./tenancy-options.ts";

/** The ports of a tenancy. The worker injects Redis and Docker, a test its own models. */
export interface TenancyPorts {
  readonly lease: LeasePort;
  readonly jobs: JobsPort;
  readonly events: EventsPort;
  readonly sandbox: SandboxPort;
  readonly placement: PlacementPort;
  readonly turns: TurnsPort;
  readonly later: LaterPort;
  readonly clock: Clock;
  readonly report: (event: TenancyEvent) => void;
}

export interface LeasePort {
  /** `refused`: Redis answers, and refuses every write. Throws if Redis does not answer. */
  renew(): Promise<"renewed" | "paused" | "lost" | "refused">;
  release(options: { readonly onlyIfEmpty: boolean }): Promise<"released" | "kept" | "lost">;
}

export interface PlacementPort {
  /** Notes that this host could not start the sandbox. `elsewhere`: another worker may be able to. */
  startFailed(): Promise<"elsewhere" | "nowhere">;
}

export interface JobsPort {
  /** Undefined if none came in about that time, or after a wake. Returns a job that has begun even when it is closed. */
  next(waitMs: number, atOnce?: AtOnce): Promise<FetchedJob | undefined>;
  /**
   * The first job of a session that is not among those, at any position of the queue. Jobs that were taken ahead come first, of any session.
   * Does not wait, and does not read the queue on every call.
   */
  nextBeside(sessions: ReadonlySet<string>): Promise<FetchedJob | undefined>;
  /** The jobs that any holder took from the queue, in the order in which they were taken. */
  active(): Promise<FetchedJob[]>;
  /** Makes a waiting `next` return. */
  wake(): Promise<void>;
  /** Ends a waiting `next`. No job is taken any more. */
  close(): Promise<void>;
}

/** For a tenancy that can run a job at once: the first that is taken begins in the same step. */
export interface AtOnce {
  /** Called before jobs are taken. Returns a name for this take, or undefined if none is to begin. */
  readonly take: () => string | undefined;
  /** Called if none began, because another job is taken that this tenancy has not begun. */
  readonly onBehind: () => void;
}

export interface FetchedJob {
  readonly id: string;
  /** Differs for each attempt. */
  readonly queuedId: string;
  readonly attempt: number;
  /** Epoch milliseconds, by the producer's clock. */
  readonly queuedAtMs?: number;
  /** It began in the step that took it. */
  readonly isBegun?: boolean;
  /** As it was submitted, with its staged request once that is loaded. */
  readonly bytes?: number;
  /** As it was submitted, not validated yet. Fetches a large request from where it was staged. */
  load(): Promise<unknown>;
  /** Removes it from its queue. Call it when its end is published and nothing is left to do for it. */
  complete(): Promise<void>;
}

export type PublishResult = "published" | "fenced" | "finished-before";
export type BeginResult = "begun" | "fenced" | "finished-before" | "cancelled" | "out-of-turn" | "late";

/** An attempt that begins. `before`: jobs taken from the queue before it, whose state this tenancy knows. */
export interface Beginner {
  readonly jobId: string;
  readonly attempt: number;
  readonly position: { readonly queuedId: string; readonly before: readonly string[] };
}

/** An attempt that ends. */
export interface Ender {
  readonly id: string;
  readonly attempt: number;
  readonly inbox?: string | undefined;
}

export interface EventsPort {
  /**
   * Records that a job begins, unless something forbids it. `out-of-turn`: it is no longer taken, or a job that is not in `before` was taken
   * before it. `late`: the lease has to be renewed first.
   */
  begin(jobId: string, attempt: number, position: Beginner["position"]): Promise<BeginResult>;
  /**
   * Takes its own `begin` back: nothing was handed to the sandbox. Works even if another worker holds the sandbox by now. False: this
   * tenancy did not begin it, or something was published about it since. `takes`: only if it began in one of them.
   */
  unbegin(jobId: string, attempt: number, takes?: readonly string[]): Promise<boolean>;
  /** The same `part` again adds nothing. */
  output(jobId: string, part: number, chunks: readonly OutputPiece[]): Promise<PublishResult>;
  artifact(jobId: string, part: number, artifact: ArtifactRef): Promise<PublishResult>;
  /** `files`: the files that it wrote, published before its end. `leaves`: the same step removes the attempt from its queue. Otherwise `complete` does. */
  finished(
    job: Ender,
    result: JobResult,
    options: { readonly leaves: boolean; readonly files?: readonly WrittenFile[] },
  ): Promise<PublishResult>;
  /** `finished` of a job that leaves its queue and `begin` of another, in one step: without the end there is no beginning. */
  finishedAndBegun(
    job: Ender,
    result: JobResult,
    options: { readonly next: Beginner; readonly files?: readonly WrittenFile[] },
  ): Promise<{ readonly published: PublishResult; readonly begun: BeginResult }>;
  /** An attempt ended, and another is due. The same step removes the attempt from its queue. */
  retrying(jobId: string, ended: EndedAttempt): Promise<PublishResult>;
  progress(jobId: string, attempt: number): Promise<Progress>;
}

export interface EndedAttempt {
  readonly attempt: number;
  readonly outcome: Outcome;
  readonly atMs: number;
  readonly dueAtMs: number;
  /** The resources that it used. */
  readonly used?: Pick<JobResult, "timing" | "usage">;
}

/** How far an attempt got, by its job's events. `retried`: it has ended, and another follows. */
export type Progress =
  | { readonly state: "not-started" }
  | { readonly state: "retried" }
  | { readonly state: "started" }
  | { readonly state: "finished"; readonly result: JobResult };

/** The schedule for jobs that run again, and the dead letters. Both calls are idempotent. */
export interface LaterPort {
  retry(next: Job, dueAtMs: number): Promise<void>;
  /** `job`: as it was found, not validated. */
  addDeadLetter(jobId: string, job: unknown, outcome: Outcome, reason: DeadReason): Promise<void>;
}

export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

/** Limits how many jobs a worker runs at once, over all its sandboxes. */
export interface TurnsPort {
  /** Waits for a turn, first come first served. The returned function ends the turn. */
  take(signal: AbortSignal): Promise<() => void>;
  /** A turn, if one is free now. */
  takeNow(): (() => void) | undefined;
}

/**
 * What to do with the container. `remove`: remove it. `park`: end everything in it and keep it for the next holder on this host, or
 * remove it if that cannot be confirmed. `leave`: keep it as it is, for this worker's next process.
 */
export type ClosingHow = "remove" | "park" | "leave";

export interface SandboxPort {
  /** Whether `open` would not have to wait for the engine. Without a job: for a job with the last one's profile. */
  isOpen(job?: Job): boolean;
  /**
   * Starts or adopts the container, with the profile that is the job's; without a job, with the tenant's default one. Throws
   * `not-granted` when the job's tenant may not use the profile or the sandbox's pool, `not-allowed` when the job asks for more than
   * it may have, `sandbox-disabled` when it is to have no sandbox. Nothing of a job has run when it throws.
   */
  open(
    job: Job | undefined,
    options: {
      readonly signal: AbortSignal;
      /** Called repeatedly while it is open. init kills everything inside when this time is over, whether or not the worker lives. */
      readonly leaseLeftMs: () => number;
    },
  ): Promise<OpenSandbox>;
  /** Limits of the last job's profile, or of the tenant's own before the first. Undefined: as in the tenancy's options. */
  readonly bounds?: TenancyBounds | undefined;
  close(how: ClosingHow): Promise<void>;
}

/** A sandbox that one job may use until `done`; its profile does not change meanwhile. */
export interface OpenSandbox {
  readonly limits: ExecLimits;
  /** Whether it had to be started. */
  readonly cold?: boolean;
  /** Throws `LeaseOver` if init refuses to go on with the job. */
  run(
    request: SandboxRequest,
    context: {
      readonly signal: AbortSignal;
      readonly onOutput: (piece: OutputPiece) => void | Promise<void>;
      readonly onArtifact: (artifact: ArtifactRef) => void | Promise<void>;
      readonly conversation: Conversation;
      /** Called before each operation in the sandbox. Throws when the lease's time is over, even if no timer has fired yet. */
      readonly check: () => void;
    },
  ): Promise<JobResult>;
  /** Copies the workspace, or puts a copy in its place. Only for a job that opened the sandbox for this. */
  workspace(
    request: WorkspaceRequest,
    context: { readonly jobId: string; readonly signal: AbortSignal; readonly check: () => void },
  ): Promise<JobValue>;
  /** Ends the container. The workspace stays. */
  stop(signal: AbortSignal): Promise<void>;
  /** Ends the container and removes the workspace. */
  destroy(signal: AbortSignal): Promise<void>;
  done(): void;
}

export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  wall(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
