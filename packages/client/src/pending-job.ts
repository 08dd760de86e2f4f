import type { JobResult, SandboxKey } from "@berth/protocol";
import type { JobEvent } from "@berth/streams";

export type IdentifiedEvent = JobEvent & { readonly id: string };

/** A job that the fleet has accepted. */
export interface EnqueuedJob {
  readonly id: string;
  readonly key: SandboxKey;
  status(): Promise<"not-started" | "started" | "finished">;
  /** Ends it, waiting or running, from any process. Its result then says so. */
  cancel(): Promise<void>;
  /** What happens to it, from the beginning or after an event's id, until its end. */
  events(after?: string, signal?: AbortSignal): AsyncIterable<IdentifiedEvent>;
  /** Settles with the result. */
  readonly result: Promise<JobResult>;
}

/**
 * A job on its way. It is enqueued at once, whether or not anybody awaits it; awaiting it gives the result, however the
 * command ended, and throws only when the fleet could not be reached or refused the job.
 */
export class PendingJob implements PromiseLike<JobResult> {
  readonly #accepted: Promise<EnqueuedJob>;

  constructor(accepted: Promise<EnqueuedJob>) {
    this.#accepted = accepted;
    // Whoever awaits sees the error; a job nobody awaits must not end the process.
    accepted.catch(() => {});
  }

  enqueued(): Promise<EnqueuedJob> {
    return this.#accepted;
  }

  async *events(after = "", signal?: AbortSignal): AsyncGenerator<IdentifiedEvent> {
    yield* (await this.#accepted).events(after, signal);
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting it is what it is for
  then<A = JobResult, B = never>(
    onResult?: ((result: JobResult) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#accepted.then((job) => job.result).then(onResult, onError);
  }
}
