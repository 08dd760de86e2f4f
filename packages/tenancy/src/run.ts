/**
 * Why a run is stopped before its command has ended. `cancelled`: by request. `worker-stops`: a job that is safe to repeat is left to the
 * next holder. `back-in-line`: it has not begun, and the tenancy reads the line again. `fenced`: this worker may no longer act.
 */
export type StopReason = "cancelled" | "worker-stops" | "back-in-line" | "fenced";

/** As the outcome shows it to the tenant. */
const texts: Record<StopReason, string> = {
  cancelled: "by request",
  "worker-stops": "its worker is stopping",
  "back-in-line": "back in line",
  fenced: "its worker lost the sandbox",
};

/** One attempt while a tenancy works on it. */
export class Run {
  readonly jobId: string;
  readonly #abort = new AbortController();
  readonly #end = Promise.withResolvers<void>();
  #stopped: StopReason | undefined;
  /** From here on only this run decides how the attempt ends. */
  isBegun = false;

  constructor(jobId: string) {
    this.jobId = jobId;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Why it was stopped first. */
  get stopped(): StopReason | undefined {
    return this.#stopped;
  }

  get end(): Promise<void> {
    return this.#end.promise;
  }

  stop(why: StopReason): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = why;
    this.#abort.abort(texts[why]);
  }

  over(): void {
    this.#end.resolve();
  }
}
