import { hash } from "node:crypto";
import {
  chosenJobId,
  type DueTime,
  dueTime,
  Fault,
  type Job,
  type JobInput,
  type JobKind,
  type JobRequestInput,
  type JobSecrets,
  jobId,
  job as jobSchema,
  jobSecrets,
  problemsOf,
  withGivenNames,
} from "@berth/protocol";
import { nanoid } from "nanoid";

/** What a caller specifies of a job; Berth fills in the rest. */
export type JobOrder<K extends JobKind = JobKind> = Omit<
  JobInput,
  "version" | "id" | "names" | "inbox" | "attempt" | "request" | "secrets" | "keySettings"
> &
  DueTime & {
    readonly id?: string;
    readonly request: JobRequestInput & { readonly kind: K };
    /** Secrets of this job: variables of its commands, sealed before they are sent. */
    readonly secrets?: Readonly<Record<string, string>> | undefined;
  };

type CheckedOrderFields = Pick<CheckedOrder, "job" | "dueAtMs" | "isNewId" | "isPlaced" | "secrets">;

/** A validated order. `berth.submit` does not validate it again. */
export class CheckedOrder {
  readonly job: Job;
  /** Undefined: at once. */
  readonly dueAtMs: number | undefined;
  /** The id is freshly generated, so it cannot be a duplicate. */
  readonly isNewId: boolean;
  /** False: the scope must still be looked up, as `Berth.placed` does. */
  readonly isPlaced: boolean;

  /** Kept apart from the job until they are sealed at submission. */
  readonly #secrets: JobSecrets | undefined;

  /** @internal Use `checkOrder`. */
  constructor(job: Job, { dueAtMs, isNewId, isPlaced, secrets }: Omit<CheckedOrderFields, "job">) {
    this.job = job;
    this.dueAtMs = dueAtMs;
    this.isNewId = isNewId;
    this.isPlaced = isPlaced;
    this.#secrets = secrets;
  }

  get secrets(): JobSecrets | undefined {
    return this.#secrets;
  }

  /** The same job under the settings of a gateway key. The caller has checked them. */
  withKeySettings(keySettings: Job["keySettings"]): CheckedOrder {
    const { keySettings: _, ...rest } = this.job;
    const job = keySettings === undefined ? rest : { ...rest, keySettings };
    return new CheckedOrder(job, { ...this, secrets: this.#secrets });
  }

  /** The same job with that scope. */
  withScope(scope: Job["scope"]): CheckedOrder {
    return new CheckedOrder({ ...this.job, scope }, { ...this, secrets: this.#secrets, isPlaced: true });
  }

  /** The same job with its tenant's name. */
  withTenantName(tenant: string): CheckedOrder {
    const names = { ...this.job.names, tenant };
    return new CheckedOrder({ ...this.job, names }, { ...this, secrets: this.#secrets });
  }

  /** The same job under an id that may have been submitted before. */
  withId(id: string): CheckedOrder {
    return new CheckedOrder(
      { ...this.job, id: jobId.parse(id) },
      { ...this, secrets: this.#secrets, isNewId: false },
    );
  }
}

export interface CheckOptions {
  /** An id that the caller's program generates, such as `<tenant>.<chosen>`; may be any job id, not only one that users can choose. */
  readonly id?: string;
  /** The id was generated just now. */
  readonly isNewId?: boolean;
}

/** Validates an order without submitting it. Throws the fault `invalid-job` with every problem. */
export function checkOrder(order: JobOrder, options: CheckOptions = {}): CheckedOrder {
  const { delayMs: _, runAtMs: __, secrets: given, ...rest } = order;
  const dueAtMs = dueAtMsOf(order, Date.now());
  const id = options.id ?? order.id ?? nanoid();
  const place = rest.forkOf === undefined ? {} : forkPlace(rest, id);
  const parsed = jobSchema.safeParse({ ...withGivenNames({ ...rest, ...place }), version: 1, id });
  if (!parsed.success) throw invalidJob(parsed.error);
  const secrets = given === undefined ? undefined : checkedSecrets(given);
  const fields = { dueAtMs, secrets, isPlaced: (place.scope ?? order.scope) !== undefined };
  if (options.id !== undefined)
    return new CheckedOrder(parsed.data, { ...fields, isNewId: options.isNewId ?? false });
  const chosen = chosenJobId.safeParse(id);
  if (!chosen.success) throw invalidJob(chosen.error, "id: ");
  return new CheckedOrder(parsed.data, { ...fields, isNewId: order.id === undefined });
}

/** A fork is the sandbox of a session. If the order names no session, the fork belongs to the job and is removed with it. */
function forkPlace(
  { session, scope, discard }: Pick<JobOrder, "session" | "scope" | "discard">,
  id: string,
): Pick<JobOrder, "session" | "scope" | "discard"> {
  const isOwn = session === undefined && scope === undefined;
  return {
    scope: scope ?? "session",
    ...(isOwn ? { session: `fork-${hash("sha256", id).slice(0, 16)}`, discard: discard ?? true } : {}),
  };
}

function checkedSecrets(given: unknown): JobSecrets {
  const parsed = jobSecrets.safeParse(given);
  if (!parsed.success) throw invalidJob(parsed.error, "secrets: ");
  return parsed.data;
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
