import {
  areUnfinished,
  checked,
  type FailedJobs,
  failedJobs,
  type IdentifiedEvent,
  invalid,
  type JobEvents,
  type JobRecord,
  type JobState,
  lastLines,
  readJobRecord,
  redriveJob,
  resultIn,
  type StreamReader,
  stateOf,
  unfinishedJobIds,
} from "@berth/ledger";
import { type GivenNames, type Job, type JobResult, sessionName, tenantId } from "@berth/protocol";
import type { Redis } from "@berth/redis";

/** A job's current state. */
export interface JobView extends Pick<JobRecord, "id" | "tenant" | "session" | "kind" | "acceptedAtMs"> {
  /** Tenant, session and agent as given; absent where the id is the name. */
  readonly names?: GivenNames;
  /** The sandbox's key. */
  readonly sandbox: JobRecord["key"];
  readonly state: JobState;
  /** Of a finished job, while Redis keeps its events. */
  readonly result?: JobResult;
}

/** The ids that find a job's events. */
export type JobAddress = Pick<JobView, "id" | "sandbox">;

export interface EndedJob extends Pick<JobView, "tenant" | "session"> {
  readonly result: JobResult;
}

export interface JobQuery {
  readonly tenant?: string | undefined;
  readonly session?: string | undefined;
  readonly state?: Exclude<JobState, "finished"> | undefined;
  /** Default 100. */
  readonly limit?: number;
}

const defaultLimit = 100;
const pageSize = 500;
/** Bounds a query that matches few jobs: it must not scan an index of a million. */
const lookedAtMost = 10_000;

/** Jobs as Redis records them, from their acceptance to a day after their end. */
export class Jobs {
  readonly #redis: Redis;
  readonly #events: JobEvents;
  readonly #reader: StreamReader;
  readonly #enqueue: (job: Job) => Promise<unknown>;

  /** @internal Use `berth.jobs`. */
  constructor(
    redis: Redis,
    events: JobEvents,
    reader: StreamReader,
    enqueue: (job: Job) => Promise<unknown>,
  ) {
    this.#redis = redis;
    this.#events = events;
    this.#reader = reader;
    this.#enqueue = enqueue;
  }

  async find(id: string): Promise<JobView | undefined> {
    const record = await readJobRecord(this.#redis, id);
    return record && this.#view(record);
  }

  /** Unfinished jobs, oldest first. Scans the oldest ten thousand of the tenant, or of the fleet. */
  async list({ tenant, session, state, limit = defaultLimit }: JobQuery = {}): Promise<JobView[]> {
    if (!(limit >= 1)) throw invalid("the limit", limit, "at least one job is listed");
    const of = tenant === undefined ? undefined : checked(tenantId, tenant, "the tenant");
    const within = session === undefined ? undefined : checked(sessionName, session, "the session");
    const wanted = (job: JobRecord) => within === undefined || job.session === within;
    const found: JobView[] = [];
    for (let from = 0; from < lookedAtMost && found.length < limit; from += pageSize) {
      const ids = await unfinishedJobIds(this.#redis, { tenant: of, from, count: pageSize });
      const records = await Promise.all(ids.map((id) => readJobRecord(this.#redis, id)));
      const matching = records.filter((record) => record !== undefined).filter(wanted);
      const views = await Promise.all(matching.map((record) => this.#view(record)));
      // Skip a job that ended after the index was read.
      found.push(
        ...views.filter((job) => (state === undefined ? job.state !== "finished" : job.state === state)),
      );
      if (ids.length < pageSize) break;
    }
    return found.slice(0, limit);
  }

  /** Of a finished job, while Redis keeps its events. */
  async ended({ id, sandbox }: JobAddress): Promise<EndedJob | undefined> {
    const [record, progress] = await Promise.all([
      readJobRecord(this.#redis, id, sandbox),
      this.#events.progress(sandbox, id),
    ]);
    const result = resultIn(progress);
    return record && result && { tenant: record.tenant, session: record.session, result };
  }

  /** Waits for the job's result. If the signal fires first it throws the fault `aborted`; the job continues. */
  result({ sandbox, id }: JobAddress, signal?: AbortSignal): Promise<JobResult> {
    return this.#reader.result(sandbox, id, signal ? { signal } : {});
  }

  /** The job's events until its end, from the beginning or after an event id. */
  events({ sandbox, id }: JobAddress, after = "", signal?: AbortSignal): AsyncGenerator<IdentifiedEvent> {
    return this.#reader.follow(sandbox, id, after, signal);
  }

  /** Whether the job has ended and this event is its last. */
  async isOverAfter({ sandbox, id }: JobAddress, eventId: string): Promise<boolean> {
    const progress = await this.#events.progress(sandbox, id);
    return progress.state === "finished" && (await this.#events.read(sandbox, id, eventId, 1)).length === 0;
  }

  /** The end of the job's output, at most 2 KiB, and its outcome; of the last attempt or an earlier one. */
  async lastLines(id: string, attempt?: number): Promise<string[]> {
    const record = await readJobRecord(this.#redis, id);
    if (!record) return [];
    const last = Math.max(record.added, 1);
    const which = { attempt: attempt ?? last, isLast: attempt === undefined || attempt === last };
    return await lastLines(this.#redis, { key: record.key, jobId: id }, which);
  }

  /**
   * Runs a finished job again as `<id>-redrive-<n>`, and returns that id. The first run's records stay. Throws `not-redrivable`, whose
   * `context.reason` is `not-found` (the job or its request has expired), `unfinished` or `unreadable`.
   */
  redrive(id: string): Promise<string> {
    return redriveJob(this.#redis, id, this.#enqueue);
  }

  /** Among a sandbox's last hundred failed jobs, those that were neither cancelled nor run again. */
  failed(sandbox: JobView["sandbox"]): Promise<FailedJobs> {
    return failedJobs(this.#redis, sandbox);
  }

  /** For each id, whether its job is known to be unfinished. One round trip. */
  areUnfinished(ids: readonly string[]): Promise<boolean[]> {
    return areUnfinished(this.#redis, ids);
  }

  async #view(record: JobRecord): Promise<JobView> {
    const { id, key, tenant, session, kind, acceptedAtMs, names } = record;
    const progress = await this.#events.progress(key, id);
    const result = resultIn(progress);
    return {
      ...{ id, tenant, session, kind, sandbox: key, state: stateOf(record, progress), acceptedAtMs },
      ...(names === undefined ? {} : { names }),
      ...(result === undefined ? {} : { result }),
    };
  }
}
