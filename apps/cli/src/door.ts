import type {
  Approval,
  DeadLetters,
  FleetUsage,
  GrantList,
  IdentifiedEvent,
  JobOrder,
  JobView,
  Reencrypted,
  SandboxView,
  Scale,
  ScheduleView,
  ShownState,
  SnapshotView,
  StoredLayer,
  StoredTool,
  TenantUsage,
  ToolUser,
  ToolView,
  UsageReport,
  WholeApproval,
  Why,
  WorkerRecord,
} from "@berth/client";
import type { JobResult, LayerChange, ProfileLayer, ScheduleInput, Scope, UsageRange } from "@berth/protocol";

export type {
  IdentifiedEvent,
  JobOrder,
  SandboxView,
  Scale,
  ScheduleInput,
  ScheduleView,
  ShownState,
  StoredLayer,
  StoredTool,
  TenantUsage,
  ToolUser,
  ToolView,
  Why,
  WorkerRecord,
};

/** A job that the fleet has accepted. */
export interface DoorJob {
  readonly id: string;
  /** Its events until its end, from the beginning or after an event id. The signal stops the reading. */
  events(after?: string, signal?: AbortSignal): AsyncIterable<IdentifiedEvent>;
  result(): Promise<JobResult>;
  status(): Promise<ShownState>;
  cancel(): Promise<void>;
}

export interface KnownDoorJob extends DoorJob {
  /** Key of the job's sandbox. */
  readonly sandbox: string;
}

export interface UnfinishedJob extends Omit<JobView, "state" | "result"> {
  /** `scheduled`: the job waits for its start time or for its next attempt. */
  readonly state: Exclude<ShownState, "finished">;
}

export interface Query {
  readonly tenant?: string | undefined;
  readonly limit: number;
}

export interface TenantsDoor {
  holdings(tenant: string): Promise<TenantUsage & GrantList>;
  used(tenant: string, range: UsageRange): Promise<UsageReport>;
  usedByAll(query: UsageRange & { readonly limit: number }): Promise<FleetUsage>;
  pause(tenant: string): Promise<void>;
  resume(tenant: string): Promise<void>;
  /** Both return everything that the tenant may use afterwards. */
  grant(tenant: string, list: GrantList): Promise<GrantList>;
  revoke(tenant: string, list: GrantList): Promise<GrantList>;
  /** Returns the ids of the jobs that do it, one per sandbox. */
  destroy(tenant: string): Promise<readonly string[]>;
}

/** Stored secrets. No door reads a value back. */
export interface SecretsDoor {
  /** `mustExist`: replace only, never create. */
  set(tenant: string, name: string, value: string, options: { readonly mustExist: boolean }): Promise<void>;
  names(tenant: string): Promise<readonly string[]>;
  /** False: no such secret. */
  remove(tenant: string, name: string): Promise<boolean>;
  reencrypt(): Promise<Reencrypted>;
}

/** Making, restoring and forking snapshots are jobs. */
export interface SnapshotsDoor {
  list(tenant: string): Promise<readonly SnapshotView[]>;
  /** False: no snapshot of that name. */
  remove(tenant: string, name: string): Promise<boolean>;
}

/** The live layers of the profiles. `settings` are not validated yet. */
export interface ProfilesDoor {
  list(): Promise<readonly StoredLayer[]>;
  get(layer: string): Promise<StoredLayer | undefined>;
  set(
    layer: string,
    settings: Readonly<Record<string, unknown>>,
    ifVersion: number | undefined,
  ): Promise<StoredLayer>;
  /** False: no such layer. */
  remove(layer: string): Promise<boolean>;
  diff(layer: string, settings: Readonly<Record<string, unknown>>): Promise<readonly LayerChange[]>;
  history(layer: string): Promise<readonly StoredLayer[]>;
  rollback(layer: string, version: number): Promise<StoredLayer>;
}

/** Methods that return a boolean return false for an unknown id. */
export interface SchedulesDoor {
  put(input: ScheduleInput): Promise<ScheduleView>;
  list(): Promise<readonly ScheduleView[]>;
  pause(id: string): Promise<boolean>;
  resume(id: string): Promise<boolean>;
  remove(id: string): Promise<boolean>;
}

export type DeadLetter = Omit<Awaited<ReturnType<DeadLetters["list"]>>[number], "job">;

export interface DeadLettersDoor {
  list(options: {
    readonly limit: number;
    readonly after?: string | undefined;
  }): Promise<readonly DeadLetter[]>;
  /** The new job's id; undefined when there is no such dead letter. */
  redrive(jobId: string): Promise<string | undefined>;
  remove(jobId: string): Promise<boolean>;
}

export type SeenApproval = Pick<Approval, "jobId" | "digest">;

export interface ApprovalsDoor {
  list(tenant: string | undefined): Promise<readonly Approval[]>;
  /** Undefined: it does not wait. */
  get(jobId: string): Promise<WholeApproval | undefined>;
  approve(seen: SeenApproval): Promise<void>;
  refuse(seen: Pick<SeenApproval, "jobId"> & Partial<SeenApproval>, reason: string): Promise<void>;
}

/** Custom tools. */
export interface ToolsDoor {
  usableBy(user: ToolUser): Promise<readonly ToolView[]>;
  list(): Promise<readonly StoredTool[]>;
  get(name: string): Promise<StoredTool | undefined>;
  /** `definition` is not validated yet. */
  set(
    name: string,
    definition: Readonly<Record<string, unknown>>,
    ifVersion: number | undefined,
  ): Promise<StoredTool>;
  /** False: no such tool. */
  remove(name: string): Promise<boolean>;
}

export interface NewKey {
  readonly role: "admin" | "tenant";
  readonly tenant?: string | undefined;
  readonly name: string;
  readonly profiles?: readonly string[] | undefined;
  readonly pools?: readonly string[] | undefined;
  readonly agent?: string | undefined;
  readonly settings?: ProfileLayer | undefined;
  readonly expiresInSeconds?: number | undefined;
  readonly rate?: number | undefined;
}

export interface KeyView {
  readonly id: string;
  readonly role: "admin" | "tenant";
  readonly tenant?: string | undefined;
  /** The name as given, if it differs from the id. */
  readonly tenantName?: string | undefined;
  /** Absent: all profiles and pools. */
  readonly profiles?: readonly string[] | undefined;
  readonly pools?: readonly string[] | undefined;
  readonly agent?: string | undefined;
  readonly settings?: ProfileLayer | undefined;
  readonly name: string;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number | undefined;
  readonly usedAtMs?: number | undefined;
}

export interface KeysDoor {
  /** Only this call ever returns the token. */
  create(key: NewKey): Promise<{ readonly token: string; readonly key: KeyView }>;
  list(): Promise<readonly KeyView[]>;
  revoke(id: string): Promise<boolean>;
}

/** Many jobs under one name. A job is known by its position among the orders, from 0. */
export interface BatchToRun {
  readonly id: string;
  /** Read once, and to its end unless the batch is cancelled or left. */
  readonly orders: AsyncIterable<JobOrder>;
  readonly total: number;
  /** Maximum of submitted jobs that have not ended; undefined: the door's default. */
  readonly inFlight: number | undefined;
  /** A gateway may be away for this long before the batch fails. The client itself waits for Redis. */
  readonly outageMs: number;
}

export interface BatchEnd {
  readonly position: number;
  readonly id: string;
  readonly result: JobResult;
}

export interface DoorBatch {
  /** Its jobs are `<prefix>-<position>`. */
  readonly prefix: string;
  /** Any caller cancelled it: the remaining orders will not be submitted. */
  readonly cancelled: boolean;
  /** Submits the orders and yields the results as they arrive, each after its order was read, except positions in `done`. Call once. */
  ends(done: ReadonlySet<number>): AsyncGenerator<BatchEnd>;
  /** Submits nothing more and cancels the open jobs; `ends` still yields their results. */
  cancel(): Promise<void>;
  /** Submits nothing more and lets submitted jobs run; `ends` is over. */
  leave(): void;
}

export interface BatchStatus {
  readonly submitted: number;
  readonly finished: number;
  readonly failed: number;
  readonly running?: number;
  readonly waiting?: number;
  readonly state?: string;
  readonly total?: number;
}

/** Looks batches up by the name they were given. Undefined: unknown batch. */
export interface BatchesDoor {
  run(batch: BatchToRun): Promise<DoorBatch>;
  status(id: string): Promise<BatchStatus | undefined>;
  cancel(id: string): Promise<{ readonly known: number; readonly cancelled: number } | undefined>;
}

/**
 * The fleet as the CLI sees it, through Redis or through a gateway. Every command that makes jobs uses `submit`, so both doors
 * behave the same.
 */
export interface Door {
  /** The address it connects to, without credentials. */
  readonly address: string;
  submit(order: JobOrder): Promise<DoorJob>;
  job(id: string): Promise<KnownDoorJob | undefined>;
  why(id: string): Promise<Why>;
  /** Of all tenants or of one, the oldest first. */
  unfinished(query: Query): Promise<readonly UnfinishedJob[]>;
  workers(): Promise<readonly WorkerRecord[]>;
  sandboxes(query: Query): Promise<readonly SandboxView[]>;
  /** The scope of jobs that name none. */
  scopeOf(of: { readonly tenant: string; readonly agent?: string | undefined }): Promise<Scope>;
  scale(): Promise<Scale>;
  drain(worker: string): Promise<void>;
  /** Undefined: no such artifact, or not any more, or not that tenant's. */
  artifact(
    id: string,
    options?: { readonly tenant?: string | undefined },
  ): Promise<AsyncIterable<Uint8Array> | undefined>;
  readonly batches: BatchesDoor;
  readonly tenants: TenantsDoor;
  readonly profiles: ProfilesDoor;
  readonly secrets: SecretsDoor;
  readonly snapshots: SnapshotsDoor;
  readonly schedules: SchedulesDoor;
  readonly deadLetters: DeadLettersDoor;
  readonly approvals: ApprovalsDoor;
  readonly tools: ToolsDoor;
  readonly keys: KeysDoor;
  close(): Promise<void>;
}
