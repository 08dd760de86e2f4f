import type { ExecLimits, JobRequest, JobResult, SandboxKey } from "@berth/protocol";

/** What a tenancy needs of the world. Everything is handed in: the fleet hands in Redis and Docker, a test what it likes. */
export interface TenancyPorts {
  readonly lease: LeasePort;
  readonly jobs: JobsPort;
  readonly events: EventsPort;
  readonly sandbox: SandboxPort;
  readonly clock: Clock;
  readonly report: (event: TenancyEvent) => void;
}

export interface LeasePort {
  /** Throws when the lease's keeper could not be asked: then nobody knows. */
  renew(): Promise<"renewed" | "lost">;
  release(options: { readonly onlyIfEmpty: boolean }): Promise<"released" | "kept" | "lost">;
}

export interface JobsPort {
  /** Undefined when none came for a while. */
  next(): Promise<FetchedJob | undefined>;
  /** What a dead holder had taken, first in line first. */
  active(): Promise<FetchedJob[]>;
  isCancelled(jobId: string): Promise<boolean>;
  close(): Promise<void>;
}

export interface FetchedJob {
  readonly id: string;
  readonly data: unknown;
  complete(): Promise<void>;
  putBack(): Promise<void>;
}

export type PublishResult = "published" | "fenced" | "finished-before";

export interface EventsPort {
  started(jobId: string): Promise<PublishResult>;
  output(jobId: string, chunks: readonly OutputPiece[]): Promise<PublishResult>;
  finished(jobId: string, inbox: string | undefined, result: JobResult): Promise<PublishResult>;
  progress(jobId: string): Promise<"not-started" | "started" | "finished">;
}

export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  readonly bytes: Buffer;
}

export interface SandboxPort {
  run(
    request: JobRequest,
    context: {
      readonly signal: AbortSignal;
      readonly onOutput: (piece: OutputPiece) => void | Promise<void>;
    },
  ): Promise<JobResult>;
  readonly limits: ExecLimits;
  /** `remove`: the container goes. Otherwise it stays for the next holder on this host. */
  close(options: { readonly remove: boolean }): Promise<void>;
}

export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  wall(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export type TenancyEvent =
  | {
      readonly event: "job.finished";
      readonly key: SandboxKey;
      readonly jobId: string;
      readonly kind: string;
      readonly outcome: string;
      readonly runMs: number;
      readonly publishMs: number;
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
      readonly back: number;
      readonly done: number;
    }
  | { readonly event: "tenancy.trouble"; readonly key: SandboxKey; readonly message: string };
