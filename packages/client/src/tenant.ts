import { checked, type FleetControl, type FleetView, type GrantList, type TenantUsage } from "@berth/ledger";
import {
  dueTime,
  execLimits,
  type JobKind,
  type JobRequestInput,
  job,
  poolName,
  profileName,
  type TenantId,
} from "@berth/protocol";
import type { Berth, JobOrder } from "./berth.ts";
import type { PendingJob } from "./pending-job.ts";

const jobOptionNames: ReadonlySet<string> = new Set(Object.keys({ ...job.shape, ...dueTime.shape }));
const limitNames: ReadonlySet<string> = new Set(Object.keys(execLimits.shape));

type OfKind<K extends JobKind> = Extract<JobRequestInput, { kind: K }>;
type CopiedFile = OfKind<"copy">["files"][number];
type Steps = OfKind<"steps">["steps"];

/** Everything about a job but what it does. */
export type JobOptions = Omit<JobOrder, "tenant" | "request">;

/** Of a job's kind, and of any job. */
type With<Request> = Request & JobOptions;
type OptionsOf<K extends JobKind, Given extends string = never> = With<Omit<OfKind<K>, "kind" | Given>>;
/** A command's limits are options like any other. */
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
  readonly id: TenantId;
}

/** One tenant's work. Each call enqueues a job at once; await it for the result. */
export class Tenant {
  readonly #berth: Berth;
  readonly #control: FleetControl;
  readonly #fleet: FleetView;
  readonly id: TenantId;

  /** @internal Its users get it from a `Berth`. */
  constructor({ berth, control, fleet, id }: TenantParts) {
    this.#berth = berth;
    this.#control = control;
    this.#fleet = fleet;
    this.id = id;
  }

  run<K extends JobKind>(
    request: JobRequestInput & { readonly kind: K },
    options: JobOptions = {},
  ): PendingJob<K> {
    return this.#berth.submit<K>({ ...options, tenant: this.id, request });
  }

  exec(command: string | readonly string[], options: ExecOptions = {}): PendingJob<"exec"> {
    const what = isList(command) ? { argv: [...command] } : { command };
    return this.#order({ kind: "exec", ...what }, withLimits(options));
  }

  code(language: OfKind<"code">["language"], source: string, options: CodeOptions = {}): PendingJob<"code"> {
    return this.#order({ kind: "code", language, source }, withLimits(options));
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

  /** Many files into the workspace, in one job. */
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
   * `in` unpacks a tar archive, plain or gzipped, into a directory of the workspace; it is given as bytes, or as base64. `out` packs
   * files and directories, by default all there are; `content` of the result is the archive as base64.
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

  /** Several things in order, in one trip through the queue. */
  steps(steps: Steps, options: OptionsOf<"steps", "steps"> = {}): PendingJob<"steps"> {
    return this.#order({ kind: "steps", steps }, options);
  }

  /** Ends the sandbox and removes its workspace and what was persisted in it. What is enqueued afterwards finds an empty one. */
  destroy(options: JobOptions = {}): PendingJob<"destroy"> {
    return this.#order({ kind: "destroy" }, options);
  }

  /** Nothing more of this tenant begins until `resume`; what runs ends, what is enqueued waits. */
  pause(): Promise<void> {
    return this.#control.pause(this.id);
  }

  resume(): Promise<void> {
    return this.#control.resume(this.id);
  }

  /** What it has and uses now: its sandboxes, the most recently used thousand unless `limit` says otherwise, and its artifacts. */
  async usage({ limit }: { readonly limit?: number } = {}): Promise<TenantUsage & GrantList> {
    return { ...(await this.#fleet.usage(this.id, limit)), ...(await this.grants()) };
  }

  /** Profiles and pools that its jobs may name. */
  grants(): Promise<GrantList> {
    return this.#control.grants.of(this.id);
  }

  /** Its jobs may name these from now on. Gives all that it may name. */
  async grant(list: Partial<GrantList>): Promise<GrantList> {
    await this.#control.grants.grant(this.id, checkedGrants(list));
    return await this.grants();
  }

  /** Its jobs that need these are refused from now on; what runs goes on. `default` stays every tenant's. */
  async revoke(list: Partial<GrantList>): Promise<GrantList> {
    await this.#control.grants.revoke(this.id, checkedGrants(list));
    return await this.grants();
  }

  /** Options that are not about jobs in general belong to the request, whose check names the unknown ones. */
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

function withLimits(options: ExecOptions | CodeOptions): object {
  const limits: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) (limitNames.has(name) ? limits : others)[name] = value;
  return Object.keys(limits).length === 0 ? others : { ...others, limits };
}

/** What is neither text nor bytes, as plain JavaScript may give it, goes on as it is: the job's own check says what is wrong. */
function inJson(content: string | Uint8Array): { content: string; encoding: "utf8" | "base64" } {
  return content instanceof Uint8Array
    ? { content: Buffer.from(content).toString("base64"), encoding: "base64" }
    : { content, encoding: "utf8" };
}

function checkedGrants({ profiles = [], pools = [] }: Partial<GrantList>): GrantList {
  return {
    profiles: profiles.map((name) => checked(profileName, name, "the profile")),
    pools: pools.map((name) => checked(poolName, name, "the pool")),
  };
}

function isList(command: string | readonly string[]): command is readonly string[] {
  return Array.isArray(command);
}
