import {
  type Fault,
  isSuccess,
  type Job,
  type JobResult,
  job as jobSchema,
  mayPass,
  type Outcome,
  type SandboxKey,
  type WrittenFile,
  writtenFiles,
} from "@berth/protocol";
import { deadReasonOf, retryAtMs } from "./retry.ts";
import type {
  Beginner,
  BeginResult,
  EndedAttempt,
  Ender,
  FetchedJob,
  TenancyPorts,
} from "./tenancy-ports.ts";

export interface EndingsOptions {
  readonly key: SandboxKey;
  readonly ports: Pick<TenancyPorts, "events" | "later" | "clock" | "report">;
  /** Retries until it is published or the lease is lost. */
  readonly publish: <R extends string>(send: () => Promise<R | "fenced">) => Promise<unknown>;
}

/** Added to an approval's time, because Redis' clock, which measures it, may be behind this one. */
const clockSkewMs = 1_000;

export interface EndOptions {
  /** The outcome that decides whether it runs again, if the tenant sees another one. */
  readonly endedAs?: Outcome | undefined;
  /** Its cancellation came after the attempt had ended. A canceller looks for a next attempt only once, perhaps before it is there. */
  readonly isCancelled?: boolean;
  /** Called just before the job's final end is published. Returns the job that is to begin in the same step. */
  readonly successor?: (() => Successor | undefined) | undefined;
}

export interface Successor {
  readonly beginner: Beginner;
  /** Called with the step's answer about that beginning. */
  readonly onSent: (answer: Promise<BeginResult>) => void;
}

/** What follows an attempt that ended. */
export interface Ended {
  /** In how long the next attempt runs; undefined if this was the job's end. */
  readonly retriedInMs: number | undefined;
  /** Whether it has left its queue. */
  readonly hasLeft: boolean;
}

/**
 * Publishes the end of an attempt, and decides what follows.
 *
 *   ended ──attempts left──▶ the next attempt is scheduled ──▶ published as retrying, and out of the queue
 *     ├──for good──▶ published, and out of the queue
 *     └──for good, and an operator should see it──▶ published ──▶ dead letter ──▶ out of the queue
 *
 * Each step can be repeated. A holder that dies between two of them leaves the job in its queue, and the next holder repeats the
 * rest: by the last event, the job has ended, is followed by another attempt, or began and was lost.
 */
export class Endings {
  readonly #options: EndingsOptions;

  constructor(options: EndingsOptions) {
    this.#options = options;
  }

  async end(jobId: string, job: Job, result: JobResult, options: EndOptions = {}): Promise<Ended> {
    const { ports, publish } = this.#options;
    const { endedAs = result.outcome } = options;
    const atMs = Math.round(ports.clock.wall());
    const dueAtMs = retryAtMs(job, endedAs, atMs);
    if (dueAtMs !== undefined && options.isCancelled) {
      const outcome = { kind: "cancelled", reason: "by request, before it ran again" } as const;
      return this.end(jobId, job, { ...result, outcome }, { successor: options.successor });
    }
    if (dueAtMs !== undefined) {
      await this.#runAgain(jobId, job, {
        ...{ attempt: job.attempt, outcome: endedAs, atMs, dueAtMs },
        used: { timing: result.timing, ...(result.usage ? { usage: result.usage } : {}) },
      });
      return { retriedInMs: dueAtMs - atMs, hasLeft: true };
    }
    const hasLeft = deadReasonOf(job, result.outcome) === undefined;
    const { attempt, inbox } = job;
    const ender = { id: jobId, attempt, inbox };
    const files = writtenFiles(job.request, result);
    const successor = hasLeft ? options.successor?.() : undefined;
    if (successor) await this.#endAndBegin(ender, result, files, successor);
    else await publish(() => ports.events.finished(ender, result, { leaves: hasLeft, files }));
    await this.#addDeadLetter(jobId, job, job, result.outcome);
    return { retriedInMs: undefined, hasLeft };
  }

  /** Puts a job into the schedule until an administrator decides, as a retry does. It counts as an attempt, and its session goes on. */
  async postpone(
    jobId: string,
    job: Job,
    { error, waitMs }: { readonly error: Fault; readonly waitMs: number },
  ): Promise<void> {
    const { clock } = this.#options.ports;
    const atMs = Math.round(clock.wall());
    const outcome = { kind: "refused", code: error.code, message: error.message } as const;
    await this.#runAgain(jobId, job, {
      attempt: job.attempt,
      outcome,
      atMs,
      dueAtMs: atMs + waitMs + clockSkewMs,
    });
  }

  async #endAndBegin(
    ender: Ender,
    result: JobResult,
    files: readonly WrittenFile[],
    { beginner: next, onSent }: Successor,
  ): Promise<void> {
    const { ports, publish } = this.#options;
    let begun: BeginResult = "late";
    const ended = publish(async () => {
      const reply = await ports.events.finishedAndBegun(ender, result, { next, files });
      begun = reply.begun;
      return reply.published;
    });
    onSent(ended.then(() => begun));
    await ended;
  }

  /** Ends a job that could not be read, or whose request is gone. `data`: the job as far as it was found. */
  async refuse(fetched: FetchedJob, data: unknown, result: JobResult): Promise<void> {
    const { ports, publish } = this.#options;
    const { id, attempt } = fetched;
    await publish(() => ports.events.finished({ id, attempt }, result, { leaves: false }));
    await this.#addDeadLetter(fetched.id, data, undefined, result.outcome);
  }

  /** Adds the dead letter of a job that another process ended: that process may have died before adding it. */
  async addMissingDeadLetter(fetched: FetchedJob, { outcome }: JobResult): Promise<void> {
    // Most jobs succeed. The job itself is needed only for the others.
    if (isSuccess(outcome)) return;
    const data = await fetched.load().catch((error: unknown) => {
      if (mayPass(error)) throw error;
    });
    await this.#addDeadLetter(fetched.id, data, jobSchema.safeParse(data).data, outcome);
  }

  async #runAgain(jobId: string, job: Job, ended: EndedAttempt): Promise<void> {
    const { ports, publish } = this.#options;
    const { attempt, dueAtMs } = ended;
    // Scheduled before `retrying` is published: in the other order, a death in between would lose the job.
    await publish(async () => {
      await ports.later.retry({ ...job, attempt: attempt + 1 }, dueAtMs);
      return "put in";
    });
    await publish(() => ports.events.retrying(jobId, ended));
  }

  async #addDeadLetter(jobId: string, data: unknown, job: Job | undefined, outcome: Outcome): Promise<void> {
    const { key, ports, publish } = this.#options;
    const reason = deadReasonOf(job, outcome);
    if (reason === undefined) return;
    await publish(async () => {
      await ports.later.addDeadLetter(jobId, data, outcome, reason);
      return "added";
    });
    ports.report({ event: "job.dead-lettered", key, jobId, reason });
  }
}
