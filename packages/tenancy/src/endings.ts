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

/**
 * What becomes of a job that ended.
 *
 *   ended ──attempts left──▶ the next one is put in ──▶ told as retrying ──▶ out of the queue
 *     └──for good──▶ told ──▶ buried, if somebody should look at it ──▶ out of the queue
 *
 * Each step can be repeated. Whoever dies between two of them leaves the job in its queue, and whoever takes over repeats the
 * rest: by the last thing that was told, it has ended, is followed by another attempt, or began and was lost.
 */
export class Endings {
  readonly #options: EndingsOptions;

  constructor(options: EndingsOptions) {
    this.#options = options;
  }

  /**
   * `endedAs`: what decides whether it runs again, where the tenant is told something else. Gives in how long it does; undefined:
   * this was its end.
   */
  async end(
    jobId: string,
    job: Job,
    result: JobResult,
    endedAs: Outcome = result.outcome,
  ): Promise<number | undefined> {
    const atMs = Math.round(this.#options.ports.clock.wall());
    const dueAtMs = retryAtMs(job, endedAs, atMs);
    if (dueAtMs !== undefined) {
      await this.#runAgain(jobId, job, { attempt: job.attempt, outcome: endedAs, atMs, dueAtMs });
      return dueAtMs - atMs;
    }
    await this.#tell({ id: jobId, attempt: job.attempt }, job.inbox, result);
    await this.#bury(jobId, job, job, result.outcome);
    return undefined;
  }

  /** A job that could not be read, or not be had whole. `data`: as much of it as there is. */
  async refuse(fetched: FetchedJob, data: unknown, result: JobResult): Promise<void> {
    await this.#tell(fetched, undefined, result);
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

  async #tell(
    { id, attempt }: Pick<FetchedJob, "id" | "attempt">,
    inbox: string | undefined,
    result: JobResult,
  ): Promise<void> {
    const { ports, publish } = this.#options;
    await publish(() => ports.events.finished(id, attempt, inbox, result));
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
