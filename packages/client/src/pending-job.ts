import type { IdentifiedEvent, JobState } from "@berth/ledger";
import { flatResult, type JobKind, type JobResult, type ResultOf, type SandboxKey } from "@berth/protocol";

/** A job that the fleet has accepted. */
export interface EnqueuedJob {
  readonly id: string;
  readonly key: SandboxKey;
  /** Whether this submission added the job. False: the id was submitted before. */
  readonly isNew?: boolean;
  /** Epoch milliseconds; set if this submission added the job. */
  readonly acceptedAtMs?: number | undefined;
  status(): Promise<JobState>;
  /** Cancels it, waiting or running, from any process. The result is then `cancelled`. */
  cancel(): Promise<void>;
  /** Its events until its end, from the beginning or after an event id. */
  events(after?: string, signal?: AbortSignal): AsyncIterable<IdentifiedEvent>;
  /** Resolves with the result. */
  readonly result: Promise<JobResult>;
}

/**
 * A submitted job. Creating it enqueues the job. Awaiting it returns the result for any outcome of the command, and throws only
 * when the fleet is unreachable or refuses the job. Unlike a promise it does nothing until the caller asks for the result: then it
 * waits, and only then can a failure be an unhandled rejection.
 */
export class PendingJob<K extends JobKind = JobKind> implements Promise<ResultOf<K>> {
  readonly [Symbol.toStringTag] = "PendingJob";
  readonly #accepted: Promise<EnqueuedJob>;
  readonly #kind: K | undefined;

  /** @internal Use the methods of `Berth`. */
  constructor(accepted: Promise<EnqueuedJob>, kind?: K) {
    this.#accepted = accepted;
    this.#kind = kind;
    // A caller that awaits gets the error. A job that is never awaited must not crash the process.
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

  /** Catches what `await` would throw. A command's failure is a result, not an error. */
  catch<B = never>(onError?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ResultOf<K> | B> {
    return this.#result().catch(onError);
  }

  /** Runs when the result is there, or when getting it failed. */
  finally(onSettled?: (() => void) | null): Promise<ResultOf<K>> {
    return this.#result().finally(onSettled);
  }

  async #result(): Promise<ResultOf<K>> {
    const job = await this.#accepted;
    return flatResult(this.#kind, await job.result);
  }
}
