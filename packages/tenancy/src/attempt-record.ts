import type { Job, JobResult, Outcome, SandboxKey } from "@berth/protocol";
import type { Clock, FetchedJob } from "./tenancy-ports.ts";

/** A job that this tenancy has read. Times are by the tenancy's clock; a stage that was not reached is absent. */
export interface Admitted {
  readonly fetched: FetchedJob;
  readonly job: Job;
  /** Ends its turn, once it has one. */
  turnOver?: (() => void) | undefined;
  /** It began in the step that took it, or in the one that ended the job before it. */
  isBegun?: boolean;
  /** When the tenancy asked for its sandbox. */
  openingMs?: number;
  /** Whether the sandbox had to be started. */
  cold?: boolean;
  begunMs?: number;
}

/** One attempt that is over: its job, its outcome, and how long each stage took. The stages follow each other up to `publishedAtMs`. */
export interface AttemptRecord {
  readonly key: SandboxKey;
  readonly jobId: string;
  readonly kind: string;
  readonly tenant: string;
  readonly attempt: number;
  readonly epoch: number;
  readonly outcome: string;
  readonly exitCode?: number;
  /** Why it was refused. */
  readonly refusal?: string;
  readonly cold: boolean;
  /** Until the tenancy asked for its sandbox, or until its end if it never did. Compares the clocks of two machines. */
  readonly queueMs: number;
  /** Until the sandbox was there and the beginning published. */
  readonly startMs: number;
  /** 0 if it did not begin. */
  readonly runMs: number;
  readonly publishMs: number;
  readonly cpuMs: number;
  readonly inBytes: number;
  readonly outBytes: number;
  /** Only for commands. */
  readonly peakMemoryBytes?: number;
  /** Epoch milliseconds. */
  readonly publishedAtMs: number;
  readonly trace?: Job["trace"];
}

export interface AttemptEnd {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly outcome: Outcome;
  readonly result: JobResult;
  /** When everything but the publication of its end was done. */
  readonly endedMs: number;
  readonly clock: Clock;
}

/** The result with the fields that every job has: when it was queued, begun and done, what it used, and its labels. */
export function stamped({ fetched, job, begunMs }: Admitted, result: JobResult, clock: Clock): JobResult {
  const { queuedAtMs } = fetched;
  const finishedAtMs = clock.wall();
  const startedAtMs = begunMs === undefined ? undefined : finishedAtMs - (clock.now() - begunMs);
  return {
    ...result,
    timing: {
      ...result.timing,
      ...(queuedAtMs === undefined ? {} : { queuedAtMs }),
      ...(startedAtMs === undefined ? {} : { startedAtMs: Math.round(startedAtMs) }),
      finishedAtMs: Math.round(finishedAtMs),
    },
    ...(fetched.bytes === undefined
      ? {}
      : { usage: { outBytes: 0, ...result.usage, inBytes: fetched.bytes } }),
    ...(Object.keys(job.labels).length > 0 ? { labels: job.labels } : {}),
  };
}

/** Call it right after the end was published. */
export function attemptRecord(admitted: Admitted, end: AttemptEnd): AttemptRecord {
  const { fetched, job, cold = false } = admitted;
  const { key, epoch, outcome, endedMs, clock, result } = end;
  const { inBytes = 0, outBytes = 0, peakMemoryBytes } = result.usage ?? {};
  const publishedMs = clock.now();
  const publishedAtMs = clock.wall();
  const openingMs = admitted.openingMs ?? endedMs;
  const begunMs = admitted.begunMs ?? endedMs;
  const openingAtMs = publishedAtMs - (publishedMs - openingMs);
  return {
    key,
    jobId: fetched.id,
    kind: job.request.kind,
    tenant: job.tenant,
    attempt: job.attempt,
    epoch,
    outcome: outcome.kind,
    ...(outcome.kind === "exited" ? { exitCode: outcome.code } : {}),
    ...(outcome.kind === "refused" ? { refusal: outcome.code } : {}),
    cold,
    queueMs: Math.max(0, openingAtMs - (fetched.queuedAtMs ?? openingAtMs)),
    startMs: begunMs - openingMs,
    runMs: endedMs - begunMs,
    publishMs: publishedMs - endedMs,
    ...{ cpuMs: result.timing.cpuMs, inBytes, outBytes },
    ...(peakMemoryBytes === undefined ? {} : { peakMemoryBytes }),
    publishedAtMs,
    ...(job.trace ? { trace: job.trace } : {}),
  };
}
