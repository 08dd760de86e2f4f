import { type Fault, isFault, type Job, job as jobSchema, mayPass, problemsOf } from "@berth/protocol";
import { bareResult } from "./bare-result.ts";
import type { Endings } from "./endings.ts";
import type { EventsPort, FetchedJob } from "./tenancy-ports.ts";

export interface IntakeOptions {
  readonly events: EventsPort;
  readonly endings: Endings;
  /** Removes a job whose end is published from its queue. */
  readonly complete: (fetched: FetchedJob) => void;
}

/** Reads jobs that were taken from the queue. Ends a job that cannot be read, so that it blocks no other. */
export class Intake {
  readonly #options: IntakeOptions;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Undefined if it could not be read; it was ended for that. */
  async read(fetched: FetchedJob): Promise<Job | undefined> {
    let data: unknown;
    try {
      data = await fetched.load();
    } catch (error) {
      if (!isFault(error) || mayPass(error)) throw error;
      await this.#unreadable(fetched, error);
      return undefined;
    }
    const parsed = jobSchema.safeParse(data);
    if (parsed.success) return parsed.data;
    const problems = problemsOf(parsed.error).join("; ");
    await this.#refuse(fetched, data, "invalid-job", `invalid job: ${problems}`);
    return undefined;
  }

  /** Handles a job whose request is gone. If its end was published, only its queue entry is left. */
  async #unreadable(fetched: FetchedJob, error: Fault): Promise<void> {
    const { events, endings, complete } = this.#options;
    const progress = await events.progress(fetched.id, fetched.attempt);
    if (progress.state === "finished") await endings.addMissingDeadLetter(fetched, progress.result);
    if (progress.state === "finished" || progress.state === "retried") complete(fetched);
    else await this.#refuse(fetched, undefined, error.code, error.message);
  }

  async #refuse(fetched: FetchedJob, data: unknown, code: string, message: string): Promise<void> {
    const result = bareResult({ kind: "refused", code, message: message.slice(0, 2_000) });
    await this.#options.endings.refuse(fetched, data, result);
    this.#options.complete(fetched);
  }
}
