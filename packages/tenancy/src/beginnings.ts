import type { Clock, EventsPort, FetchedJob, JobsPort } from "./tenancy-ports.ts";

export interface BeginningsOptions {
  readonly events: Pick<EventsPort, "unbegin">;
  readonly jobs: Pick<JobsPort, "active">;
  readonly clock: Pick<Clock, "now" | "sleep">;
}

/** How many takes without an answer are remembered: Redis may carry one out late. */
const unheardMost = 100;

const againMs = 250;

/**
 * What Redis may have recorded as begun by this tenancy, and of which the sandbox got nothing. Whoever finds such a job taken would end
 * it as lost, so its record is taken back first.
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
  readonly #unheard = new Set<string>();

  constructor(options: BeginningsOptions) {
    this.#options = options;
  }

  has({ queuedId }: FetchedJob): boolean {
    return this.#own.has(queuedId);
  }

  /** Jobs are about to be taken, the first of which begins in the same step. */
  taking(take: string): void {
    this.#unheard.add(take);
    const [oldest] = this.#unheard;
    if (this.#unheard.size > unheardMost && oldest !== undefined) this.#unheard.delete(oldest);
  }

  /** Redis has answered. `fetched`: what it took first, if anything. */
  took(take: string, fetched: FetchedJob | undefined): void {
    if (fetched?.isBegun) this.recording(fetched);
    this.#unheard.delete(take);
  }

  /** It is about to be recorded, or was, and the sandbox has nothing of it. */
  recording(fetched: FetchedJob): void {
    this.#own.set(fetched.queuedId, { fetched });
  }

  /** The sandbox may have got something of it from here on, or Redis has answered that it did not begin. */
  forget({ queuedId }: FetchedJob): void {
    this.#own.delete(queuedId);
  }

  /** Forgets those that are no longer taken from the queue. */
  found(queuedIds: readonly string[]): void {
    const left = new Set(queuedIds);
    for (const queuedId of this.#own.keys()) if (!left.has(queuedId)) this.#own.delete(queuedId);
  }

  /** Takes back that a job began here, if the sandbox has nothing of it. False: it did not begin here, or it was handed over. */
  async takeBack(fetched: FetchedJob): Promise<boolean> {
    const { id, queuedId, attempt } = fetched;
    const own = this.#own.get(queuedId);
    if (!own && this.#unheard.size === 0) return false;
    const isBack = await this.#options.events.unbegin(id, attempt, own ? undefined : [...this.#unheard]);
    if (this.#own.get(queuedId) === own) this.#own.delete(queuedId);
    return isBack;
  }

  /** Takes all such beginnings back: the next holder would end these jobs as lost. */
  async takeAllBack(): Promise<"taken-back"> {
    for (const { fetched } of [...this.#own.values()]) await this.takeBack(fetched);
    if (this.#unheard.size > 0)
      for (const fetched of await this.#options.jobs.active()) await this.takeBack(fetched);
    return "taken-back";
  }

  /** As `takeAllBack`, for a tenancy whose lease is over. Retries for so long at most, and does not throw. */
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
