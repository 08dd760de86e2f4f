import type { Job, JobResult, Outcome, SandboxKey } from "@berth/protocol";
import type { Clock, FetchedJob } from "./tenancy-ports.ts";

/** A job on its way. Times by the tenancy's clock; what has not come about is absent. */
export interface Admitted {
  readonly fetched: FetchedJob;
  readonly job: Job;
  /** Ends its turn, once it has one. */
  turnOver?: (() => void) | undefined;
  /** When its sandbox was asked for. */
  openingMs?: number;
  /** Whether the sandbox had to be started. */
  cold?: boolean;
  begunMs?: number;
}

/** One attempt that is over: whose, how, and what each stage of it took. The stages follow each other up to `toldAtMs`. */
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
  /** Until its sandbox was asked for; all the time before its end when it never was. By the clocks of two machines. */
  readonly queueMs: number;
  /** Until the sandbox was there and the beginning told. */
  readonly startMs: number;
  /** 0: it did not begin. */
  readonly runMs: number;
  readonly publishMs: number;
  /** Epoch milliseconds. */
  readonly toldAtMs: number;
  readonly trace?: Job["trace"];
}

export interface AttemptEnd {
  readonly key: SandboxKey;
  readonly epoch: number;
  readonly outcome: Outcome;
  /** When nothing was left but to tell it. */
  readonly endedMs: number;
  readonly clock: Clock;
}

/** The result with what its readers ask of every job: when it was queued, begun and done, and its labels. */
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
    ...(Object.keys(job.labels).length > 0 ? { labels: job.labels } : {}),
  };
}

/** Called when its end has just been told. */
export function attemptRecord(admitted: Admitted, end: AttemptEnd): AttemptRecord {
  const { fetched, job, cold = false } = admitted;
  const { key, epoch, outcome, endedMs, clock } = end;
  const toldMs = clock.now();
  const toldAtMs = clock.wall();
  const openingMs = admitted.openingMs ?? endedMs;
  const begunMs = admitted.begunMs ?? endedMs;
  const openingAtMs = toldAtMs - (toldMs - openingMs);
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
    publishMs: toldMs - endedMs,
    toldAtMs,
    ...(job.trace ? { trace: job.trace } : {}),
  };
}
