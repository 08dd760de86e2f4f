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
  /** What happens to it, from the beginning or after an event's id, until its end. The signal ends the reading. */
  events(after?: string, signal?: AbortSignal): AsyncIterable<IdentifiedEvent>;
  result(): Promise<JobResult>;
  status(): Promise<ShownState>;
  cancel(): Promise<void>;
}

export interface KnownDoorJob extends DoorJob {
  /** Key of the sandbox that it runs in. */
  readonly sandbox: string;
}

export interface UnfinishedJob extends Omit<JobView, "state" | "result"> {
  /** `scheduled`: it waits for its time, its first or that of another attempt. */
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
  /** Each gives all that the tenant may use afterwards. */
  grant(tenant: string, list: GrantList): Promise<GrantList>;
  revoke(tenant: string, list: GrantList): Promise<GrantList>;
  /** Ids of the jobs that do it, one for each sandbox. */
  destroy(tenant: string): Promise<readonly string[]>;
}

/** Stored secrets. No door reads a value back. */
export interface SecretsDoor {
  /** `mustExist`: only replaces. */
  set(tenant: string, name: string, value: string, options: { readonly mustExist: boolean }): Promise<void>;
  names(tenant: string): Promise<readonly string[]>;
  /** False: there is none. */
  remove(tenant: string, name: string): Promise<boolean>;
  reencrypt(): Promise<Reencrypted>;
}

/** What is made of snapshots is made by jobs. */
export interface SnapshotsDoor {
  list(tenant: string): Promise<readonly SnapshotView[]>;
  /** False: there is none of that name. */
  remove(tenant: string, name: string): Promise<boolean>;
}

/** The live layers of the profiles. `settings` unchecked, as the user wrote them. */
export interface ProfilesDoor {
  list(): Promise<readonly StoredLayer[]>;
  get(layer: string): Promise<StoredLayer | undefined>;
  set(
    layer: string,
    settings: Readonly<Record<string, unknown>>,
    ifVersion: number | undefined,
  ): Promise<StoredLayer>;
  /** False: there is none. */
  remove(layer: string): Promise<boolean>;
  diff(layer: string, settings: Readonly<Record<string, unknown>>): Promise<readonly LayerChange[]>;
  history(layer: string): Promise<readonly StoredLayer[]>;
  rollback(layer: string, version: number): Promise<StoredLayer>;
}

/** Of these, whatever gives a boolean gives false when there is nothing of that id. */
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
  /** The new job's id; undefined when there is no such letter. */
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
  /** `definition` unchecked, as the user wrote it. */
  set(
    name: string,
    definition: Readonly<Record<string, unknown>>,
    ifVersion: number | undefined,
  ): Promise<StoredTool>;
  /** False: there is none. */
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
  /** As it was given, where the id is another text. */
  readonly tenantName?: string | undefined;
  /** Absent: all. */
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
  /** The token is given this once. */
  create(key: NewKey): Promise<{ readonly token: string; readonly key: KeyView }>;
  list(): Promise<readonly KeyView[]>;
  revoke(id: string): Promise<boolean>;
}

/** Many jobs under one name. Each is known by its position among the orders, from 0. */
export interface BatchToRun {
  readonly id: string;
  /** Read once, and to its end unless the batch is cancelled or left. */
  readonly orders: AsyncIterable<JobOrder>;
  readonly total: number;
  /** Jobs submitted and not ended, at most; undefined: what suits the door. */
  readonly inFlight: number | undefined;
  /** A gateway may be away for this long before the batch fails. Redis is waited for by the client itself. */
  readonly patienceMs: number;
}

export interface BatchEnd {
  readonly position: number;
  readonly id: string;
  readonly result: JobResult;
}

export interface DoorBatch {
  /** Its jobs are `<prefix>-<position>`. */
  readonly prefix: string;
  /** Cancelled by any caller: orders that are not submitted yet never will be. */
  readonly cancelled: boolean;
  /** Submits the orders and gives the ends as they come, each after its order was read; without those of `done`. Once. */
  ends(done: ReadonlySet<number>): AsyncGenerator<BatchEnd>;
  /** Submits nothing more and cancels what has not ended; `ends` brings those ends. */
  cancel(): Promise<void>;
  /** Submits nothing more and lets run what was submitted; `ends` is over. */
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

/** By the name that a batch was given. Undefined: no such batch is known. */
export interface BatchesDoor {
  run(batch: BatchToRun): Promise<DoorBatch>;
  status(id: string): Promise<BatchStatus | undefined>;
  cancel(id: string): Promise<{ readonly known: number; readonly cancelled: number } | undefined>;
}

/**
 * The fleet as the command line sees it, through Redis or through a gateway. Everything that makes jobs is built on
 * `submit`, so that both doors do the same.
 */
export interface Door {
  /** Where it leads, without secrets. */
  readonly address: string;
  submit(order: JobOrder): Promise<DoorJob>;
  job(id: string): Promise<KnownDoorJob | undefined>;
  why(id: string): Promise<Why>;
  /** Of all tenants or one, the oldest first. */
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
