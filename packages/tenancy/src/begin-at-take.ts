import type { Job } from "@berth/protocol";
import type { Beginnings } from "./beginnings.ts";
import type { Runs } from "./runs.ts";
import type { FetchedJob, TenancyPorts } from "./tenancy-ports.ts";

export interface BeginAtTakeOptions {
  readonly ports: Pick<TenancyPorts, "jobs" | "sandbox" | "turns">;
  readonly beginnings: Beginnings;
  readonly runs: Pick<Runs, "beginTaken">;
  /** Whether the sandbox is idle and open, so that a job may begin at once. */
  readonly isFree: () => boolean;
  /** The job itself; undefined if it could not be read and was ended for that. */
  readonly read: (fetched: FetchedJob) => Promise<Job | undefined>;
  readonly cancel: (jobId: string) => void;
  readonly onStale: () => void;
}

/**
 * Takes the next job. If the tenancy can run it at once, the job begins in the step that takes it, which saves a round trip.
 *
 *   free ──jobs are about to be taken, and a turn is free──▶ taking (has the turn) ──one began──▶ begun ──begin()──▶ free
 *     ▲                                                        └──none began, or the answer was lost───────────────────┘
 *
 * If the answer is lost, Redis has recorded a beginning that this tenancy does not know. The next look at the queue finds that job taken,
 * its record names the take, and `Beginnings` takes the beginning back.
 */
export class BeginAtTake {
  readonly #options: BeginAtTakeOptions;
  /** The turn for the job that is being taken. */
  #turnOver: (() => void) | undefined;
  readonly #cancelled = new Set<string>();
  #takes = 0;

  constructor(options: BeginAtTakeOptions) {
    this.#options = options;
  }

  /** As `JobsPort.next`. The caller has to pass a job that has begun to `begin`. */
  async next(waitMs: number): Promise<FetchedJob | undefined> {
    const { ports, beginnings, onStale } = this.#options;
    let fetched: FetchedJob | undefined;
    let take: string | undefined;
    const atOnce = {
      take: () => {
        take = this.#take();
        return take;
      },
      // If the call was sent twice, the other taken job may be one that its first copy began.
      onBehind: () => {
        take = undefined;
        onStale();
      },
    };
    try {
      fetched = await ports.jobs.next(waitMs, atOnce);
      if (take !== undefined) beginnings.took(take, fetched);
      return fetched;
    } finally {
      if (!fetched?.isBegun) this.#turn()?.();
    }
  }

  async begin(fetched: FetchedJob): Promise<void> {
    const { runs, read, cancel } = this.#options;
    const job = await read(fetched).catch((error: unknown) => {
      this.#turn()?.();
      throw error;
    });
    // The turn is kept until here: a cancellation that comes while a staged request is read must not be missed.
    const turnOver = this.#turn();
    if (job) await runs.beginTaken({ fetched, job, turnOver, isBegun: true });
    else turnOver?.();
    if (this.#cancelled.delete(fetched.id)) cancel(fetched.id);
  }

  /** Cancels a job that this tenancy does not know: a take whose answer is not here yet may have begun it. */
  cancelUnknown(jobId: string): void {
    if (this.#turnOver) this.#cancelled.add(jobId);
  }

  #take(): string | undefined {
    const { ports, beginnings, isFree } = this.#options;
    this.#cancelled.clear();
    if (isFree() && ports.sandbox.isOpen()) this.#turnOver = ports.turns.takeNow();
    if (this.#turnOver === undefined) return undefined;
    const take = `take-${++this.#takes}`;
    beginnings.taking(take);
    return take;
  }

  #turn(): (() => void) | undefined {
    const turnOver = this.#turnOver;
    this.#turnOver = undefined;
    return turnOver;
  }
}
