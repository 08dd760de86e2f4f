import {
  type Acceptance,
  ApiKeys,
  acceptForLater,
  Cancellation,
  checked,
  checkLayout,
  Enqueuer,
  FleetControl,
  type FleetUsage,
  type FleetUsageQuery,
  FleetView,
  fleetUsage,
  invalid,
  JobEvents,
  Offers,
  ResultGroup,
  type ResultGroupOptions,
  readJobRecord,
  readSandboxKey,
  type SandboxQuery,
  type SandboxView,
  type Scale,
  Schedule,
  ScopeDefaults,
  SnapshotStore,
  Staging,
  StreamReader,
  stateOf,
  submissionFault,
  TenantNames,
  tenantsLike,
  usageReport,
  type Why,
  type WorkerRecord,
  why,
} from "@berth/ledger";
import {
  agentName,
  chosenJobId,
  type DefaultScope,
  isMappedTenant,
  type Job,
  type JobKind,
  type JobResult,
  problemsOf,
  redisUrl,
  type SandboxKey,
  sandboxKeyOf,
  tenantId,
} from "@berth/protocol";
import { connectRedis, type Redis, withoutPassword } from "@berth/redis";
import { nanoid } from "nanoid";
import { Approvals } from "./approvals.ts";
import { Artifacts } from "./artifacts.ts";
import { Batch, type BatchOptions } from "./batch.ts";
import { DeadLetters } from "./dead-letters.ts";
import { Jobs } from "./jobs.ts";
import { CheckedOrder, checkOrder, type JobOrder } from "./order.ts";
import { type EnqueuedJob, PendingJob } from "./pending-job.ts";
import { Profiles } from "./profiles.ts";
import { Schedules } from "./schedules.ts";
import { Sealer } from "./sealer.ts";
import { Secrets } from "./secrets.ts";
import { type Fork, type ForkOptions, Tenant } from "./tenant.ts";
import { Tools } from "./tools.ts";

export interface BerthOptions {
  /** `redis://…`, `rediss://…`, `redis+sentinel://…`, `redis+cluster://…` or `unix:///path`. */
  readonly redis: string;
  /**
   * When a job counts as accepted: when Redis' primary has it (default), or when every connected replica, and at least `replicas`, have
   * it too (default 1; with 0 a primary without replicas accepts alone). Must equal the workers' BERTH_ACCEPT.
   */
  readonly accept?: "primary" | "replicated" | undefined;
  readonly replicas?: number | undefined;
  /**
   * Keys that seal secrets, 32 bytes each in base64 or hexadecimal, separated by commas. The first one seals. Must equal the workers'
   * BERTH_SECRETS_KEY. Without keys, jobs with secrets are refused.
   */
  readonly secretsKey?: string | undefined;
  /** The workers' artifact directory, if this process can read it; without it only small artifacts can be fetched. */
  readonly artifacts?: string | undefined;
}

export type { JobOrder };

export interface SubmitOptions {
  /** The job's trace context; replaces the order's. */
  readonly trace?: NonNullable<Job["trace"]> | undefined;
  /** Workers do not report the job's end to this client; it reads the result from the job's events on demand. */
  readonly detached?: boolean;
  /** Ends the wait for the result with the fault `aborted`; the job continues. */
  readonly signal?: AbortSignal;
}

/** If two clients submit one id at the same moment, only one inbox gets the result. So both read the job's own stream after this long. */
const listenAfterMs = 1_000;

/** The state of a job whose record has expired; only its events remain. */
const unmarked = { added: 0, begun: 0, outcome: undefined };

/** A client of the fleet. Uses two connections for any number of jobs, and one more per result group. */
export class Berth {
  readonly #redis: Redis;
  readonly #enqueuer: Enqueuer;
  readonly #offers: Offers;
  readonly #events: JobEvents;
  readonly #reader: StreamReader;
  readonly #fleet: FleetView;
  readonly #control: FleetControl;
  readonly #schedule: Schedule;
  readonly #cancellation: Cancellation;
  readonly #scopes: ScopeDefaults;
  readonly #names: TenantNames;
  /** Jobs of any client: one by its id, or all that have not ended. */
  readonly jobs: Jobs;
  /** Jobs that are submitted on a schedule. */
  readonly schedules: Schedules;
  /** The gateways' API keys. */
  readonly keys: ApiKeys;
  /** Files that jobs kept, by id. */
  readonly artifacts: Artifacts;
  /** Jobs that wait for an administrator's approval. */
  readonly approvals: Approvals;
  /** Custom tools: named commands with parameters. Jobs of kind `tool` run them. */
  readonly tools: Tools;
  /** The live layers of the profiles, which change sandboxes while the fleet runs. */
  readonly profiles: Profiles;
  /** Tenants' stored secrets. No call reads a value back. */
  readonly secrets: Secrets;
  /** Failed jobs that can be run again. */
  readonly deadLetters: DeadLetters;
  readonly #sealer: Sealer;
  readonly #url: string;
  readonly #groups = new Set<ResultGroup>();
  #closed = false;

  constructor({ redis, accept = "primary", replicas = 1, secretsKey, artifacts }: BerthOptions) {
    const address = redisUrl.safeParse(redis);
    if (!address.success)
      throw invalid("the address of Redis", shownAddress(redis), problemsOf(address.error).join("; "));
    if (!(replicas >= 0)) throw invalid("replicas", replicas, "it is 0 or more");
    const sealer = new Sealer(secretsKey);
    this.#sealer = sealer;
    this.#url = redis;
    const acceptance = accept === "replicated" ? { replicas } : undefined;
    this.#redis = connectRedis({ url: redis, role: "commands", accept: acceptance, check: checkLayout });
    this.#enqueuer = new Enqueuer(this.#redis);
    this.artifacts = new Artifacts(this.#redis, { directory: artifacts });
    this.#offers = new Offers(this.#redis);
    this.#events = new JobEvents(this.#redis);
    this.#reader = new StreamReader(this.#redis, connectRedis({ url: redis, role: "blocking" }), nanoid());
    const enqueue = (job: Job) => this.#enqueuer.enqueue(job);
    this.jobs = new Jobs(this.#redis, this.#events, this.#reader, enqueue);
    this.#fleet = new FleetView(this.#redis);
    this.#scopes = new ScopeDefaults(this.#redis);
    this.#names = new TenantNames(this.#redis);
    this.#control = new FleetControl(this.#redis);
    this.#schedule = new Schedule(this.#redis, new Staging(this.#redis));
    this.#cancellation = new Cancellation({
      redis: this.#redis,
      control: this.#control,
      schedule: this.#schedule,
      events: this.#events,
    });
    this.approvals = new Approvals(this.#redis, this.#schedule);
    this.tools = new Tools(this.#redis);
    this.profiles = new Profiles(this.#redis, this.#names, () => this.#scopes.forget());
    this.secrets = new Secrets(this.#redis, this.#names, sealer);
    this.schedules = new Schedules({ redis: this.#redis, names: this.#names, ticks: this.#schedule });
    this.keys = new ApiKeys(this.#redis);
    this.deadLetters = new DeadLetters(this.#redis, enqueue);
  }

  /** By the tenant's name, or by the id that Berth derived from it. Throws `invalid-argument` for an invalid name. */
  tenant(id: string): Tenant {
    return new Tenant({
      berth: this,
      control: this.#control,
      fleet: this.#fleet,
      used: (tenant, range) => usageReport(this.#redis, tenant, range),
      admit: () => this.#names.admitGiven(id),
      snapshots: new SnapshotStore(this.#redis),
      id: checked(tenantId, id, "the tenant"),
      name: id,
    });
  }

  /** Same as `tenant.fork`. */
  fork(
    snapshot: { readonly tenant: string; readonly name: string },
    count = 1,
    options: ForkOptions = {},
  ): Fork[] {
    return this.tenant(snapshot.tenant).fork(snapshot.name, count, options);
  }

  /** Submits a job. An id runs once: a second submission with it gets the first one's result. */
  submit<K extends JobKind>(order: JobOrder<K> | CheckedOrder, options: SubmitOptions = {}): PendingJob<K> {
    const { request } = order instanceof CheckedOrder ? order.job : (order ?? {});
    // A JavaScript caller may omit the request; validation then throws.
    return new PendingJob(this.#enqueue(order ?? {}, options), request?.kind as K | undefined);
  }

  /** The scope of a tenant's jobs that name none, or of those of one agent. A change takes up to two seconds. */
  scopeOf(tenant: string, agent?: string): Promise<DefaultScope> {
    return this.#scopes.of({
      tenant: checked(tenantId, tenant, "the tenant"),
      ...(agent === undefined ? {} : { agent: checked(agentName, agent, "the agent") }),
    });
  }

  /** Adds the scope that the job will get, and the tenant's name if it differs from the id. `submit` does the same by itself. */
  async placed(given: CheckedOrder): Promise<CheckedOrder> {
    const { tenant, agent, names, id } = given.job;
    try {
      const name = isMappedTenant(tenant) ? await this.#names.admit(tenant, names?.tenant) : undefined;
      const order = name === undefined ? given : given.withTenantName(name);
      return order.isPlaced ? order : order.withScope(await this.#scopes.of({ tenant, agent }));
    } catch (error) {
      throw submissionFault(error, id, "no");
    }
  }

  /** Runs many jobs under one name. The same name again resumes the batch. */
  batch(orders: Iterable<JobOrder> | AsyncIterable<JobOrder>, options: BatchOptions): Batch {
    const { id, inFlight = 1 } = options;
    if (!chosenJobId.safeParse(`${id}-0`).success)
      throw invalid("the batch's id", id, "it is letters, digits, - and _, 120 at most");
    if (!(inFlight >= 1)) throw invalid("inFlight", inFlight, "at least one job is in flight");
    return new Batch((order) => this.submit(order).enqueued(), orders, options);
  }

  /** Results of all jobs of all clients, shared among the consumers of a group. */
  results(group: string, options: ResultGroupOptions): ResultGroup {
    const names = { group, consumer: options?.consumer };
    for (const [what, name] of Object.entries(names))
      if (typeof name !== "string" || name === "") throw invalid(`the ${what}`, name, "it is a name");
    const blocking = connectRedis({ url: this.#url, role: "blocking" });
    const opened = new ResultGroup(this.#redis, blocking, group, options);
    for (const other of this.#groups) if (other.closed) this.#groups.delete(other);
    this.#groups.add(opened);
    return opened;
  }

  /** A job of any client, from its acceptance to a day after its end; undefined if unknown. */
  async job(jobId: string): Promise<EnqueuedJob | undefined> {
    const key = await readSandboxKey(this.#redis, jobId);
    return key && this.#handle(key, jobId);
  }

  /** What tenants' jobs used in a range of days. */
  usage(query: FleetUsageQuery = {}): Promise<FleetUsage> {
    return fleetUsage(this.#redis, query);
  }

  /** Cancels a job of any client, waiting or running. False: unknown id. */
  async cancel(jobId: string): Promise<boolean> {
    const job = await this.job(jobId);
    await job?.cancel();
    return job !== undefined;
  }

  /** What a job waits for, or how far it is. */
  why(jobId: string): Promise<Why> {
    return why(
      {
        redis: this.#redis,
        offers: this.#offers,
        events: this.#events,
        fleet: this.#fleet,
        dueAtMs: async (key, id) => (await this.#schedule.find(key, id))?.dueAtMs,
      },
      jobId,
    );
  }

  workers(): Promise<WorkerRecord[]> {
    return this.#fleet.workers();
  }

  sandboxes(query?: SandboxQuery): Promise<SandboxView[]> {
    return this.#fleet.sandboxes(query);
  }

  /** Tenants whose names contain a text, in alphabetical order; at most fifty. Scans an index of all sandboxes. */
  tenantsLike(part: string): Promise<string[]> {
    return tenantsLike(this.#redis, part);
  }

  scale(): Promise<Scale> {
    return this.#fleet.scale();
  }

  /** Drains a worker: it takes no new jobs, finishes its running ones, and exits. */
  drain(worker: string): Promise<void> {
    return this.#control.drain(worker);
  }

  /** Asks a worker for its status. Throws `no-answer` if none comes. */
  ping(worker: string): Promise<Record<string, string | number>> {
    return this.#control.ping(worker);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.close();
    for (const group of this.#groups) await group.close();
    await this.#enqueuer.close();
    await this.#schedule.close();
    await this.deadLetters.close();
    await this.#offers.close();
    this.#redis.disconnect();
  }

  async #enqueue(order: JobOrder | CheckedOrder, options: SubmitOptions): Promise<EnqueuedJob> {
    const { trace, detached = false, signal } = options;
    const given = order instanceof CheckedOrder ? order : checkOrder(order);
    const { job: checked, dueAtMs, isNewId, secrets } = await this.placed(given);
    const job: Job = {
      ...checked,
      ...(secrets === undefined ? {} : { secrets: this.#sealer.sealForJob(checked.tenant, secrets) }),
      ...(detached ? {} : { inbox: this.#reader.name }),
      ...(trace === undefined ? {} : { trace }),
    };
    const key = sandboxKeyOf(job);
    const expected = detached ? undefined : this.#reader.expect(job.id);
    let accepted: Acceptance;
    try {
      accepted =
        dueAtMs === undefined
          ? await this.#enqueuer.enqueue(job)
          : { isNew: (await acceptForLater(this.#schedule, job, dueAtMs)) === "added" };
    } catch (error) {
      expected?.forget();
      throw error;
    }
    const { isNew } = accepted;
    if (!expected) return this.#handle(key, job.id, { accepted });
    const listening = { expected, listenAfterMs: isNew ? listenAfterMs : 0, ...(signal ? { signal } : {}) };
    const known =
      isNewId && !signal
        ? this.#reader.expectedResult(key, expected)
        : this.#reader.result(key, job.id, listening);
    known.catch(() => {});
    return this.#handle(key, job.id, { accepted, known });
  }

  #handle(
    key: SandboxKey,
    id: string,
    { accepted, known }: { readonly accepted?: Acceptance; readonly known?: Promise<JobResult> } = {},
  ): EnqueuedJob {
    const reader = this.#reader;
    const events = this.#events;
    return {
      id,
      key,
      ...accepted,
      // Read another client's job stream only when the caller asks for the result.
      get result() {
        return known ?? reader.result(key, id);
      },
      status: async () => {
        const record = await readJobRecord(this.#redis, id);
        return stateOf(record ?? unmarked, await events.progress(key, id));
      },
      cancel: () => this.#cancellation.cancel(key, id),
      events: (after = "", signal) => reader.follow(key, id, after, signal),
    };
  }
}

function shownAddress(given: unknown): unknown {
  return typeof given === "string" ? withoutPassword(given) : given;
}
