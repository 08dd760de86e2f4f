import { randomBytes } from "node:crypto";
import {
  checked,
  type FleetControl,
  type FleetView,
  type GrantList,
  invalid,
  type SnapshotStore,
  type TenantUsage,
  type UsageReport,
  viewOf,
} from "@berth/ledger";
import {
  dueTime,
  execLimits,
  type JobKind,
  type JobRequestInput,
  job,
  poolName,
  profileName,
  type SnapshotView,
  sessionName,
  snapshotName,
  type TenantId,
  type ToolArguments,
  tenantId,
  toolsDirectory,
  type UsageRange,
} from "@berth/protocol";
import type { Berth, JobOrder } from "./berth.ts";
import type { PendingJob } from "./pending-job.ts";

const jobOptionNames: ReadonlySet<string> = new Set(Object.keys({ ...job.shape, ...dueTime.shape }));
const limitNames: ReadonlySet<string> = new Set(Object.keys(execLimits.shape));

type OfKind<K extends JobKind> = Extract<JobRequestInput, { kind: K }>;
type CopiedFile = OfKind<"copy">["files"][number];
type Steps = OfKind<"steps">["steps"];

/** Options of a job of any kind. */
export type JobOptions = Omit<JobOrder, "tenant" | "request">;

/** Options of a job's kind, and of any job. */
type With<Request> = Request & JobOptions;
type OptionsOf<K extends JobKind, Given extends string = never> = With<Omit<OfKind<K>, "kind" | Given>>;
/** A command's limits are plain options. */
type CommandOptions<Own> = With<Omit<Own, "limits"> & NonNullable<OfKind<"code">["limits"]>>;
export type ExecOptions = CommandOptions<
  Pick<OfKind<"exec">, "cwd" | "env" | "stdin" | "background" | "artifacts">
>;
export type CodeOptions = CommandOptions<Omit<OfKind<"code">, "kind" | "language" | "source">>;

type ArchiveIn = [direction: "in", tar: string | Uint8Array, options?: With<{ readonly path?: string }>];
type ArchiveOut = [direction: "out", paths?: string | readonly string[], options?: JobOptions];

export interface TenantParts {
  readonly berth: Berth;
  readonly control: FleetControl;
  readonly fleet: FleetView;
  readonly used: (tenant: TenantId, range: UsageRange) => Promise<UsageReport>;
  /** Checks that the tenant exists, before calls that create something without a job. */
  readonly admit: () => Promise<unknown>;
  readonly snapshots: SnapshotStore;
  readonly id: TenantId;
  readonly name: string;
}

export interface ForkOptions {
  /** Prefix of the sessions' names; random by default. The same prefix returns the same forks. */
  readonly prefix?: string;
}

/** One tenant's work. Each call enqueues a job at once; await it for the result. */
export class Tenant {
  readonly #berth: Berth;
  readonly #control: FleetControl;
  readonly #fleet: FleetView;
  readonly #used: TenantParts["used"];
  readonly #admit: TenantParts["admit"];
  readonly #snapshots: SnapshotStore;
  readonly #parts: TenantParts;
  readonly id: TenantId;
  /** The name as given; differs from the id if the id was derived from it. */
  readonly name: string;

  /** @internal Use `berth.tenant`. */
  constructor(parts: TenantParts) {
    const { berth, control, fleet, used, admit, id, name, snapshots } = parts;
    this.#parts = parts;
    this.#snapshots = snapshots;
    this.#berth = berth;
    this.#control = control;
    this.#fleet = fleet;
    this.#used = used;
    this.#admit = admit;
    this.id = id;
    this.name = name;
  }

  run<K extends JobKind>(
    request: JobRequestInput & { readonly kind: K },
    options: JobOptions = {},
  ): PendingJob<K> {
    return this.#berth.submit<K>({ ...this.defaults, ...options, tenant: this.name, request });
  }

  /** Options of each of its jobs, which a call can override. */
  protected get defaults(): JobOptions {
    return {};
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): PendingJob<"exec"> {
    const what = isList(command) ? { argv: [...command] } : { command };
    return this.#order({ kind: "exec", ...what }, withLimits(options));
  }

  code(language: OfKind<"code">["language"], source: string, options: CodeOptions = {}): PendingJob<"code"> {
    return this.#order({ kind: "code", language, source }, withLimits(options));
  }

  /** Runs a custom tool that the operator defined, with its arguments by name. */
  tool(name: string, args: ToolArguments = {}, options: JobOptions = {}): PendingJob<"tool"> {
    return this.#order({ kind: "tool", name, args }, options);
  }

  /** The worker downloads a URL into the workspace, within the egress rules of the profile. */
  fetch(url: string, path: string, options: OptionsOf<"fetch", "url" | "path"> = {}): PendingJob<"fetch"> {
    return this.#order({ kind: "fetch", url, path }, options);
  }

  write(
    path: string,
    content: string | Uint8Array,
    options: OptionsOf<"write", "path" | "content" | "encoding"> = {},
  ): PendingJob<"write"> {
    return this.#order({ kind: "write", path, ...inJson(content) }, options);
  }

  read(path: string, options: OptionsOf<"read", "path"> = {}): PendingJob<"read"> {
    return this.#order({ kind: "read", path }, options);
  }

  stat(path: string, options: OptionsOf<"stat", "path"> = {}): PendingJob<"stat"> {
    return this.#order({ kind: "stat", path }, options);
  }

  list(path = "", options: OptionsOf<"list", "path"> = {}): PendingJob<"list"> {
    return this.#order({ kind: "list", path }, options);
  }

  /** Lists /tools of its sandboxes, with sizes and dates. Refused if their profile has no `toolsAccess`. */
  tools(options: JobOptions = {}): PendingJob<"list"> {
    return this.#order({ kind: "list", path: toolsDirectory, recursive: true, maxItems: 10_000 }, options);
  }

  remove(path: string, options: OptionsOf<"remove", "path"> = {}): PendingJob<"remove"> {
    return this.#order({ kind: "remove", path }, options);
  }

  move(from: string, to: string, options: OptionsOf<"move", "from" | "to"> = {}): PendingJob<"move"> {
    return this.#order({ kind: "move", from, to }, options);
  }

  edit(
    path: string,
    find: string,
    replace: string,
    options: OptionsOf<"edit", "path" | "find" | "replace"> = {},
  ): PendingJob<"edit"> {
    return this.#order({ kind: "edit", path, find, replace }, options);
  }

  patch(diff: string, options: JobOptions = {}): PendingJob<"patch"> {
    return this.#order({ kind: "patch", diff }, options);
  }

  grep(pattern: string, options: OptionsOf<"grep", "pattern"> = {}): PendingJob<"grep"> {
    return this.#order({ kind: "grep", pattern }, options);
  }

  glob(
    patterns: string | readonly string[],
    options: OptionsOf<"glob", "patterns"> = {},
  ): PendingJob<"glob"> {
    return this.#order({ kind: "glob", patterns: [patterns].flat() }, options);
  }

  /** Writes many files in one job. */
  copy(
    files: Readonly<Record<string, string | Uint8Array>> | readonly CopiedFile[],
    options: JobOptions = {},
  ): PendingJob<"copy"> {
    const list = Array.isArray(files)
      ? [...files]
      : Object.entries(files ?? {}).map(([path, content]) => ({ path, ...inJson(content) }));
    return this.#order({ kind: "copy", files: list }, options);
  }

  /**
   * `in` unpacks a tar archive, plain or gzipped, into a directory of the workspace; pass bytes or base64. `out` packs files and
   * directories, by default all; `content` of the result is the archive in base64.
   */
  archive(...given: ArchiveIn | ArchiveOut): PendingJob<"archive"> {
    if (given[0] === "in") {
      const [, tar, options] = given;
      const content = tar instanceof Uint8Array ? Buffer.from(tar).toString("base64") : tar;
      return this.#order({ kind: "archive", direction: "in", content }, options);
    }
    const [direction, paths = "", options] = given;
    return this.#order({ kind: "archive", direction, paths: [paths].flat() }, options);
  }

  /** Runs several requests in order, as one job. */
  steps(steps: Steps, options: OptionsOf<"steps", "steps"> = {}): PendingJob<"steps"> {
    return this.#order({ kind: "steps", steps }, options);
  }

  /** Removes the sandbox, its workspace and everything persisted in it. Later jobs find an empty one. */
  destroy(options: JobOptions = {}): PendingJob<"destroy"> {
    return this.#order({ kind: "destroy" }, options);
  }

  /** Stops the sandbox's container and everything that runs in it. Its files stay; later jobs get a fresh container. */
  stop(options: JobOptions = {}): PendingJob<"stop"> {
    return this.#order({ kind: "stop" }, options);
  }

  /** Saves the workspace under a name. Kills background processes first. */
  snapshot(name: string, options: OptionsOf<"snapshot", "name"> = {}): PendingJob<"snapshot"> {
    return this.#order({ kind: "snapshot", name }, options);
  }

  /** Replaces the workspace by the snapshot's files; everything else in it is removed. */
  restore(name: string, options: JobOptions = {}): PendingJob<"restore"> {
    return this.#order({ kind: "restore", name }, options);
  }

  /** The tenant's snapshots, by name. */
  async snapshots(): Promise<SnapshotView[]> {
    return (await this.#snapshots.list(this.id)).map(viewOf);
  }

  /** False: no such snapshot. A worker removes its files within seconds; its forks stay. */
  removeSnapshot(name: string): Promise<boolean> {
    return this.#snapshots.drop(this.id, checked(snapshotName, name, "the snapshot"));
  }

  /** Removes all snapshots of the tenant. */
  async removeSnapshots(): Promise<void> {
    for (const { name } of await this.snapshots()) await this.removeSnapshot(name);
  }

  /**
   * Returns new sandboxes that start with the snapshot's files when their first job runs. They are sessions named `<prefix>-1`,
   * `<prefix>-2` and so on, and stay until they are destroyed.
   */
  fork(name: string, count = 1, { prefix = `${name.slice(0, 40)}-${shortId()}` }: ForkOptions = {}): Fork[] {
    const forkOf = checked(snapshotName, name, "the snapshot");
    if (!(Number.isInteger(count) && count >= 1))
      throw invalid("the number of forks", count, "it is 1 or more");
    return Array.from({ length: count }, (_, index) => {
      const session = checked(sessionName, `${prefix}-${index + 1}`, "the fork's session");
      return new Fork(this.#parts, { session, forkOf });
    });
  }

  /** Pauses the tenant: running jobs finish, queued jobs wait for `resume`. */
  async pause(): Promise<void> {
    await this.#admit();
    await this.#control.pause(this.id);
  }

  resume(): Promise<void> {
    return this.#control.resume(this.id);
  }

  /**
   * What it has now, and what its jobs used. Now: its artifacts and its `limit` most recently used sandboxes (default 1,000). Used: by
   * day and in total, the last thirty days unless `from` and `to` are given, such as `2026-11-18`.
   */
  async usage({
    limit,
    ...range
  }: UsageRange & { readonly limit?: number } = {}): Promise<TenantUsage & GrantList & UsageReport> {
    const [used, now, grants] = await Promise.all([
      this.used(range),
      this.#fleet.usage(this.id, limit),
      this.grants(),
    ]);
    return { ...now, ...grants, ...used };
  }

  /** What its jobs used, as in `usage`. */
  used(range: UsageRange = {}): Promise<UsageReport> {
    return this.#used(this.id, range);
  }

  /** What it has now, as in `usage`. */
  async holdings({ limit }: { readonly limit?: number } = {}): Promise<TenantUsage & GrantList> {
    return { ...(await this.#fleet.usage(this.id, limit)), ...(await this.grants()) };
  }

  /** Profiles and pools that its jobs may name, and tenants whose files they may read. */
  grants(): Promise<GrantList> {
    return this.#control.grants.of(this.id);
  }

  /** Lets its jobs name these from now on. New containers have the files of `peers` at /team. Returns everything granted. */
  async grant(list: Partial<GrantList>): Promise<GrantList> {
    const grants = checkedGrants(list);
    await this.#admit();
    await this.#control.grants.grant(this.id, grants);
    return await this.grants();
  }

  /** Refuses its jobs that need these from now on; running jobs continue. `default` cannot be revoked. */
  async revoke(list: Partial<GrantList>): Promise<GrantList> {
    await this.#control.grants.revoke(this.id, checkedGrants(list));
    return await this.grants();
  }

  /** Options that are not job options go into the request, whose validation names unknown ones. */
  #order<K extends JobKind>(
    request: JobRequestInput & { readonly kind: K },
    options: object = {},
  ): PendingJob<K> {
    const ofJob: Record<string, unknown> = {};
    const ofRequest: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(options))
      (jobOptionNames.has(name) ? ofJob : ofRequest)[name] = value;
    return this.run<K>({ ...ofRequest, ...request }, ofJob);
  }
}

/** A sandbox that starts with a snapshot's files. Its jobs run in a session of their own. */
export class Fork extends Tenant {
  readonly session: string;
  readonly forkOf: string;

  /** @internal Use `tenant.fork`. */
  constructor(
    parts: TenantParts,
    { session, forkOf }: { readonly session: string; readonly forkOf: string },
  ) {
    super(parts);
    this.session = session;
    this.forkOf = forkOf;
  }

  protected override get defaults(): JobOptions {
    return { session: this.session, scope: "session", forkOf: this.forkOf };
  }

  /** Removes the fork and its files. */
  override destroy(options: JobOptions = {}): PendingJob<"destroy"> {
    // Without `forkOf`, so that destroying does not first create the fork.
    return super.destroy({ forkOf: undefined, ...options });
  }
}

function shortId(): string {
  return randomBytes(4).toString("hex");
}

function withLimits(options: ExecOptions | CodeOptions): object {
  const limits: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) (limitNames.has(name) ? limits : others)[name] = value;
  return Object.keys(limits).length === 0 ? others : { ...others, limits };
}

/** Passes on a JavaScript caller's wrong type unchanged; validating the job reports it. */
function inJson(content: string | Uint8Array): { content: string; encoding: "utf8" | "base64" } {
  return content instanceof Uint8Array
    ? { content: Buffer.from(content).toString("base64"), encoding: "base64" }
    : { content, encoding: "utf8" };
}

function checkedGrants({ profiles = [], pools = [], peers = [] }: Partial<GrantList>): GrantList {
  return {
    profiles: profiles.map((name) => checked(profileName, name, "the profile")),
    pools: pools.map((name) => checked(poolName, name, "the pool")),
    peers: peers.map((name) => checked(tenantId, name, "the peer")),
  };
}

function isList(command: string | readonly string[]): command is readonly string[] {
  return Array.isArray(command);
}
