import {
  isSuccess,
  type Job,
  type JobResult,
  job as jobSchema,
  type Outcome,
  type SandboxKey,
} from "@berth/protocol";
import { mayPass } from "./passing.ts";
import { deadReasonOf, retryAtMs } from "./retry.ts";
import type { EndedAttempt, FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface EndingsOptions {
  readonly key: SandboxKey;
  readonly ports: Pick<TenancyPorts, "events" | "later" | "clock" | "report">;
  /** Tries until it is said or we may no longer speak. */
  readonly publish: <R extends string>(say: () => Promise<R | "fenced">) => Promise<unknown>;
}

/** What became of an attempt that ended. */
export interface Ended {
  /** In how long the next attempt runs; undefined: this was the job's end. */
  readonly retriedInMs: number | undefined;
  /** It is out of its queue. */
  readonly hasLeft: boolean;
}

/**
 * What becomes of a job that ended.
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

  /** `endedAs`: what decides whether it runs again, where the tenant sees another outcome. */
  async end(jobId: string, job: Job, result: JobResult, endedAs: Outcome = result.outcome): Promise<Ended> {
    const { ports, publish } = this.#options;
    const atMs = Math.round(ports.clock.wall());
    const dueAtMs = retryAtMs(job, endedAs, atMs);
    if (dueAtMs !== undefined) {
      await this.#runAgain(jobId, job, { attempt: job.attempt, outcome: endedAs, atMs, dueAtMs });
      return { retriedInMs: dueAtMs - atMs, hasLeft: true };
    }
    const hasLeft = deadReasonOf(job, result.outcome) === undefined;
    const { attempt, inbox } = job;
    await publish(() => ports.events.finished({ id: jobId, attempt, inbox }, result, { leaves: hasLeft }));
    await this.#bury(jobId, job, job, result.outcome);
    return { retriedInMs: undefined, hasLeft };
  }

  /** A job that could not be read, or not be had whole. `data`: as much of it as there is. */
  async refuse(fetched: FetchedJob, data: unknown, result: JobResult): Promise<void> {
    const { ports, publish } = this.#options;
    const { id, attempt } = fetched;
    await publish(() => ports.events.finished({ id, attempt }, result, { leaves: false }));
    await this.#bury(fetched.id, data, undefined, result.outcome);
  }

  /** Its end was told by another: what follows the telling may not have been done. */
  async told(fetched: FetchedJob, { outcome }: JobResult): Promise<void> {
    // Most ended well; only of the others is the job itself needed.
    if (isSuccess(outcome)) return;
    const data = await fetched.load().catch((error: unknown) => {
      if (mayPass(error)) throw error;
    });
    await this.#bury(fetched.id, data, jobSchema.safeParse(data).data, outcome);
  }

  async #runAgain(jobId: string, job: Job, ended: EndedAttempt): Promise<void> {
    const { ports, publish } = this.#options;
    const { attempt, dueAtMs } = ended;
    // Before it is told: the other way round, dying in between would lose the job.
    await publish(async () => {
      await ports.later.retry({ ...job, attempt: attempt + 1 }, dueAtMs);
      return "put in";
    });
    await publish(() => ports.events.retrying(jobId, ended));
  }

  async #bury(jobId: string, data: unknown, job: Job | undefined, outcome: Outcome): Promise<void> {
    const { key, ports, publish } = this.#options;
    const reason = deadReasonOf(job, outcome);
    if (reason === undefined) return;
    await publish(async () => {
      await ports.later.bury(jobId, data, outcome, reason);
      return "buried";
    });
    ports.report({ event: "job.buried", key, jobId, reason });
  }
}
