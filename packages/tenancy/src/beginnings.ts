import type { Clock, EventsPort, FetchedJob, JobsPort } from "./tenancy-ports.ts";

export interface BeginningsOptions {
  readonly events: Pick<EventsPort, "unbegin">;
  readonly jobs: Pick<JobsPort, "active">;
  readonly clock: Pick<Clock, "now" | "sleep">;
}

/** How many takes without an answer are remembered: Redis may carry one out late. */
const unansweredMost = 100;

const againMs = 250;

/**
 * Beginnings that Redis may have recorded for this tenancy although init got nothing of the job. The next holder would end such a job as
 * lost, so this tenancy takes the record back first.
 *
 *   unknown ──begin or take is sent──▶ may be recorded ──handed to the sandbox, or Redis has answered that it is not recorded──▶ forgotten
 *
 * A beginning stays here until Redis has answered that it is taken back. A call that failed is repeated at the next look at the queue.
 */
export class Beginnings {
  readonly #options: BeginningsOptions;
  /** By their ids in the queue. */
  readonly #own = new Map<string, { readonly fetched: FetchedJob }>();
  /** Takes that may have begun a job which this tenancy did not get. */
  readonly #unanswered = new Set<string>();

  constructor(options: BeginningsOptions) {
    this.#options = options;
  }

  has({ queuedId }: FetchedJob): boolean {
    return this.#own.has(queuedId);
  }

  /** Jobs are about to be taken, the first of which begins in the same step. */
  taking(take: string): void {
    this.#unanswered.add(take);
    const [oldest] = this.#unanswered;
    if (this.#unanswered.size > unansweredMost && oldest !== undefined) this.#unanswered.delete(oldest);
  }

  /** Redis has answered. `fetched`: what it took first, if anything. */
  took(take: string, fetched: FetchedJob | undefined): void {
    if (fetched?.isBegun) this.recording(fetched);
    this.#unanswered.delete(take);
  }

  /** Its beginning is about to be recorded, or was, and init has nothing of it. */
  recording(fetched: FetchedJob): void {
    this.#own.set(fetched.queuedId, { fetched });
  }

  /** init may have got something of it from here on, or Redis has answered that it did not begin. */
  forget({ queuedId }: FetchedJob): void {
    this.#own.delete(queuedId);
  }

  /** Forgets jobs that are no longer taken. `queuedIds`: those that are. */
  keepOnly(queuedIds: readonly string[]): void {
    const left = new Set(queuedIds);
    for (const queuedId of this.#own.keys()) if (!left.has(queuedId)) this.#own.delete(queuedId);
  }

  /** Takes back the record that a job began here, if init has nothing of it. False: it did not begin here, or it was handed over. */
  async takeBack(fetched: FetchedJob): Promise<boolean> {
    const { id, queuedId, attempt } = fetched;
    const own = this.#own.get(queuedId);
    if (!own && this.#unanswered.size === 0) return false;
    const isBack = await this.#options.events.unbegin(id, attempt, own ? undefined : [...this.#unanswered]);
    if (this.#own.get(queuedId) === own) this.#own.delete(queuedId);
    return isBack;
  }

  /** Takes all such beginnings back: the next holder would end these jobs as lost. */
  async takeAllBack(): Promise<"taken-back"> {
    for (const { fetched } of [...this.#own.values()]) await this.takeBack(fetched);
    if (this.#unanswered.size > 0)
      for (const fetched of await this.#options.jobs.active()) await this.takeBack(fetched);
    return "taken-back";
  }

  /** As `takeAllBack`, for a tenancy whose lease is over. Retries for at most `ms`, and does not throw. */
  async takeAllBackWithin(ms: number): Promise<void> {
    const { clock } = this.#options;
    const untilMs = clock.now() + ms;
    for (;;) {
      const isDone = await this.takeAllBack().catch(() => undefined);
      if (isDone || clock.now() > untilMs) return;
      await clock.sleep(againMs);
    }
  }
}
