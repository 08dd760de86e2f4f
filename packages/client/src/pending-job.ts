import type { IdentifiedEvent, JobState } from "@berth/ledger";
import { flatResult, type JobKind, type JobResult, type ResultOf, type SandboxKey } from "@berth/protocol";

/** A job that the fleet has accepted. */
export interface EnqueuedJob {
  readonly id: string;
  readonly key: SandboxKey;
  /** Of a submission: whether it added the job. False: the id was submitted before. */
  readonly isNew?: boolean;
  /** Epoch milliseconds, of a submission that added the job. */
  readonly acceptedAtMs?: number | undefined;
  status(): Promise<JobState>;
  /** Ends it, waiting or running, from any process. The result is then `cancelled`. */
  cancel(): Promise<void>;
  /** What happens to it, from the beginning or after an event's id, until its end. */
  events(after?: string, signal?: AbortSignal): AsyncIterable<IdentifiedEvent>;
  /** Settles with the result. */
  readonly result: Promise<JobResult>;
}

/**
 * A submitted job. It is enqueued at once, whether or not the caller awaits it. Awaiting it gives the result, however the
 * command ended, and throws only when the fleet could not be reached or refused the job. It differs from a promise in one
 * thing: until the caller asks for the result, nothing waits for it, and a failure is not reported as unhandled.
 */
export class PendingJob<K extends JobKind = JobKind> implements Promise<ResultOf<K>> {
  readonly [Symbol.toStringTag] = "PendingJob";
  readonly #accepted: Promise<EnqueuedJob>;
  readonly #kind: K | undefined;

  /** @internal Its users get it from a `Berth`. */
  constructor(accepted: Promise<EnqueuedJob>, kind?: K) {
    this.#accepted = accepted;
    this.#kind = kind;
    // A caller that awaits sees the error; a job that is never awaited must not end the process.
    accepted.catch(() => {});
  }

  enqueued(): Promise<EnqueuedJob> {
    return this.#accepted;
  }

  async *events(after = "", signal?: AbortSignal): AsyncGenerator<IdentifiedEvent> {
    yield* (await this.#accepted).events(after, signal);
  }

  // biome-ignore lint/suspicious/noThenProperty: awaiting it is what it is for
  then<A = ResultOf<K>, B = never>(
    onResult?: ((result: ResultOf<K>) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#result().then(onResult, onError);
  }

  /** Of what `await` would throw, never of how a command ended. */
  catch<B = never>(onError?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ResultOf<K> | B> {
    return this.#result().catch(onError);
  }

  /** Whatever becomes of it: called when its result is there, or cannot be had. */
  finally(onSettled?: (() => void) | null): Promise<ResultOf<K>> {
    return this.#result().finally(onSettled);
  }

  async #result(): Promise<ResultOf<K>> {
    const job = await this.#accepted;
    return flatResult(this.#kind, await job.result);
  }
}
