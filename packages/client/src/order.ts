import {
  chosenJobId,
  type DueTime,
  dueTime,
  Fault,
  type Job,
  type JobInput,
  type JobKind,
  type JobRequestInput,
  jobId,
  job as jobSchema,
  problemsOf,
} from "@berth/protocol";
import { nanoid } from "nanoid";

/** What a caller says of a job; the rest is filled in. */
export type JobOrder<K extends JobKind = JobKind> = Omit<
  JobInput,
  "version" | "id" | "inbox" | "attempt" | "request"
> &
  DueTime & { readonly id?: string; readonly request: JobRequestInput & { readonly kind: K } };

/** An order that is a valid job. `berth.submit` takes it without checking it again. */
export class CheckedOrder {
  readonly job: Job;
  /** Undefined: at once. */
  readonly dueAtMs: number | undefined;
  /** The id is freshly generated, so it cannot be a duplicate. */
  readonly isNewId: boolean;

  /** @internal Its users get it from `checkOrder`. */
  constructor(job: Job, dueAtMs: number | undefined, isNewId: boolean) {
    this.job = job;
    this.dueAtMs = dueAtMs;
    this.isNewId = isNewId;
  }

  /** The same job with those settings, which nothing checks here. */
  withSettings(settings: Job["settings"]): CheckedOrder {
    const { settings: _, ...rest } = this.job;
    const job = settings === undefined ? rest : { ...rest, settings };
    return new CheckedOrder(job, this.dueAtMs, this.isNewId);
  }

  /** The same job under an id that may have been submitted before. */
  withId(id: string): CheckedOrder {
    return new CheckedOrder({ ...this.job, id: jobId.parse(id) }, this.dueAtMs, false);
  }
}

export interface CheckOptions {
  /** An id that the caller's own program makes, such as `<tenant>.<chosen>`: any job's, not only one that can be chosen. */
  readonly id?: string;
  /** That id was generated just now. */
  readonly isNewId?: boolean;
}

/** Checks an order without submitting it. Throws the fault `invalid-job` with every problem. */
export function checkOrder(order: JobOrder, options: CheckOptions = {}): CheckedOrder {
  const { delayMs: _, runAtMs: __, ...rest } = order;
  const dueAtMs = dueAtMsOf(order, Date.now());
  const id = options.id ?? order.id ?? nanoid();
  const parsed = jobSchema.safeParse({ ...rest, version: 1, id });
  if (!parsed.success) throw invalidJob(parsed.error);
  if (options.id !== undefined) return new CheckedOrder(parsed.data, dueAtMs, options.isNewId ?? false);
  const chosen = chosenJobId.safeParse(id);
  if (!chosen.success) throw invalidJob(chosen.error, "id: ");
  return new CheckedOrder(parsed.data, dueAtMs, order.id === undefined);
}

function dueAtMsOf({ delayMs, runAtMs }: DueTime, nowMs: number): number | undefined {
  const parsed = dueTime.safeParse({ delayMs, runAtMs });
  if (!parsed.success) throw invalidJob(parsed.error);
  const dueAtMs = runAtMs ?? (delayMs === undefined ? undefined : nowMs + delayMs);
  return dueAtMs === undefined || dueAtMs <= nowMs ? undefined : dueAtMs;
}

function invalidJob(error: Parameters<typeof problemsOf>[0], prefix = ""): Fault {
  return new Fault("invalid-job", { problems: problemsOf(error).map((problem) => prefix + problem) });
}
