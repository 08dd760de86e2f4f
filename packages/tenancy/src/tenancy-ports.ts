import type {
  ArtifactRef,
  Conversation,
  DeadReason,
  ExecLimits,
  Job,
  JobResult,
  Outcome,
  SandboxKey,
  SandboxRequest,
} from "@berth/protocol";
import type { AttemptRecord } from "./attempt-record.ts";

/** What a tenancy needs of the world. Everything is handed in: the fleet hands in Redis and Docker, a test what it likes. */
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
  /**
   * `refused`: Redis answers, and refuses every write. Throws when Redis did not answer.
   */
  renew(): Promise<"renewed" | "paused" | "lost" | "refused">;
  release(options: { readonly onlyIfEmpty: boolean }): Promise<"released" | "kept" | "lost">;
}

export interface PlacementPort {
  /** Notes that this host could not start the sandbox. `elsewhere`: another worker may be able to. */
  startFailed(): Promise<"elsewhere" | "nowhere">;
}

export interface JobsPort {
  /** Undefined when none came for about so long, or somebody woke it. Gives a job that has begun even when it is closed. */
  next(waitMs: number, atOnce?: AtOnce): Promise<FetchedJob | undefined>;
  /**
   * The first job of another session than those, wherever in the queue it is; before it, what was taken ahead, whatever its session.
   * Does not wait, and may not look at the queue each time.
   */
  nextBeside(sessions: ReadonlySet<string>): Promise<FetchedJob | undefined>;
  /** What is taken from the queue, by whomever, the first taken first. */
  active(): Promise<FetchedJob[]>;
  /** Makes a `next` that waits return. */
  wake(): Promise<void>;
  /** A `next` that waits takes nothing more. */
  close(): Promise<void>;
}

/** For a tenancy that can run a job at once: the first that is taken begins in the same step. */
export interface AtOnce {
  /** Asked when jobs are about to be taken: the name of this take, or undefined if none is to begin. */
  readonly take: () => string | undefined;
  /** None began, since something is taken that this tenancy has not begun. */
  readonly onBehind: () => void;
}

export interface FetchedJob {
  readonly id: string;
  /** Another for each attempt. */
  readonly queuedId: string;
  readonly attempt: number;
  /** Epoch milliseconds, by the clock of whoever put it in. */
  readonly queuedAtMs?: number;
  /** It began in the step that took it. */
  readonly isBegun?: boolean;
  /** As it was put in, not checked yet; a large request is fetched from where it was staged. */
  load(): Promise<unknown>;
  /** Takes it out of its queue: its end is published, and nothing is left to be done about it. */
  complete(): Promise<void>;
}

export type PublishResult = "published" | "fenced" | "finished-before";

export interface EventsPort {
  /**
   * Says that a job begins, unless something forbids it. `out-of-turn`: it is no longer taken from its queue, or one is that was taken
   * before it and is not among those in `before`. `late`: the lease has to be renewed first.
   */
  begin(
    jobId: string,
    attempt: number,
    place: { readonly queuedId: string; readonly before: readonly string[] },
  ): Promise<"begun" | "fenced" | "finished-before" | "cancelled" | "out-of-turn" | "late">;
  /**
   * Takes its own `begin` back: nothing was handed to the sandbox. Also when somebody else holds the sandbox by now. False: this tenancy
   * did not begin it, or something was said of it since. `takes`: only if it began in one of them.
   */
  unbegin(jobId: string, attempt: number, takes?: readonly string[]): Promise<boolean>;
  /** The same `part` again adds nothing. */
  output(jobId: string, part: number, chunks: readonly OutputPiece[]): Promise<PublishResult>;
  artifact(jobId: string, part: number, artifact: ArtifactRef): Promise<PublishResult>;
  /** `leaves`: the attempt is out of its queue in the same step. Otherwise `complete` takes it out. */
  finished(
    job: { readonly id: string; readonly attempt: number; readonly inbox?: string | undefined },
    result: JobResult,
    options: { readonly leaves: boolean },
  ): Promise<PublishResult>;
  /** Not the end: an attempt ended, and another is due. The attempt is out of its queue in the same step. */
  retrying(jobId: string, ended: EndedAttempt): Promise<PublishResult>;
  progress(jobId: string, attempt: number): Promise<Progress>;
}

export interface EndedAttempt {
  readonly attempt: number;
  readonly outcome: Outcome;
  readonly atMs: number;
  readonly dueAtMs: number;
}

/** How far an attempt got, by what was said of its job. `retried`: it has ended, and another follows. */
export type Progress =
  | { readonly state: "not-started" }
  | { readonly state: "retried" }
  | { readonly state: "started" }
  | { readonly state: "finished"; readonly result: JobResult };

/** Where jobs go that are not over, or should be looked at. Doing either twice is the same as once. */
export interface LaterPort {
  retry(next: Job, dueAtMs: number): Promise<void>;
  /** `job`: as it was found. */
  bury(jobId: string, job: unknown, outcome: Outcome, reason: DeadReason): Promise<void>;
}

export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

/** What this worker runs at once, over all its sandboxes. */
export interface TurnsPort {
  /** Waits for a turn, first come first served. What it gives back ends it. */
  take(signal: AbortSignal): Promise<() => void>;
  /** A turn, if nothing has to be waited for. */
  takeNow(): (() => void) | undefined;
}

export interface SandboxPort {
  /** Whether `open` would wait for nothing that the engine does. Without a job: for one with the profile of the last. */
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
      /** Asked again and again while it is open: when nothing is left, everything inside is killed, whatever becomes of the worker. */
      readonly leaseLeftMs: () => number;
    },
  ): Promise<OpenSandbox>;
  /** Without work for this long, the sandbox is given up; 0: never. Undefined: as in the tenancy's options. */
  readonly idleMs?: number | undefined;
  /** `remove`: the container goes. Otherwise it stays for the next holder on this host. */
  close(options: { readonly remove: boolean }): Promise<void>;
}

/** A sandbox that one job may use until `done`; its profile does not change meanwhile. */
export interface OpenSandbox {
  readonly limits: ExecLimits;
  /** It was not there when it was asked for. */
  readonly cold?: boolean;
  /** Throws `LeaseOver` when the sandbox takes nothing more of the job. */
  run(
    request: SandboxRequest,
    context: {
      readonly signal: AbortSignal;
      readonly onOutput: (piece: OutputPiece) => void | Promise<void>;
      readonly onArtifact: (artifact: ArtifactRef) => void | Promise<void>;
      readonly conversation: Conversation;
      /** Before each thing done in the sandbox. Throws when the lease's time is over, even if no timer has told yet. */
      readonly check: () => void;
    },
  ): Promise<JobResult>;
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

export type TenancyEvent =
  | ({ readonly event: "job.finished" } & AttemptRecord)
  | ({ readonly event: "job.retrying"; readonly inMs: number } & AttemptRecord)
  | {
      readonly event: "job.buried";
      readonly key: SandboxKey;
      readonly jobId: string;
      readonly reason: DeadReason;
    }
  | {
      readonly event: "tenancy.fenced";
      readonly key: SandboxKey;
      readonly epoch: number;
      readonly why: string;
    }
  | {
      readonly event: "tenancy.settled";
      readonly key: SandboxKey;
      readonly lost: number;
      readonly again: number;
      readonly done: number;
    }
  | { readonly event: "tenancy.trouble"; readonly key: SandboxKey; readonly message: string };
