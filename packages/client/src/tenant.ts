import { checked, type FleetControl, type GrantList } from "@berth/ledger";
import { type JobRequestInput, poolName, profileName, type TenantId } from "@berth/protocol";
import type { Berth, JobOrder } from "./berth.ts";
import type { PendingJob } from "./pending-job.ts";

type OfKind<K extends JobRequestInput["kind"]> = Extract<JobRequestInput, { kind: K }>;
type More<K extends JobRequestInput["kind"], Given extends string = never> = Omit<OfKind<K>, "kind" | Given>;
type ExecMore = Pick<OfKind<"exec">, "cwd" | "env" | "stdin" | "limits" | "background" | "artifacts">;
type CopiedFile = OfKind<"copy">["files"][number];
type Steps = OfKind<"steps">["steps"];

type ArchiveIn = [
  direction: "in",
  tar: string | Uint8Array,
  more?: { readonly path?: string },
  options?: JobOptions,
];
type ArchiveOut = [direction: "out", paths?: string | readonly string[], options?: JobOptions];

/** Everything about a job but what it does. */
export type JobOptions = Omit<JobOrder, "tenant" | "request">;

/** One tenant's work. Each call enqueues a job at once; await it for the result. */
export class Tenant {
  readonly #berth: Berth;
  readonly #control: FleetControl;
  readonly id: TenantId;

  constructor(berth: Berth, control: FleetControl, id: TenantId) {
    this.#berth = berth;
    this.#control = control;
    this.id = id;
  }

  run(request: JobRequestInput, options: JobOptions = {}): PendingJob {
    return this.#berth.submit({ ...options, tenant: this.id, request });
  }

  exec(command: string | readonly string[], more: ExecMore = {}, options?: JobOptions): PendingJob {
    const what = isList(command) ? { argv: [...command] } : { command };
    return this.run({ kind: "exec", ...what, ...more }, options);
  }

  code(
    language: OfKind<"code">["language"],
    source: string,
    more: More<"code", "language" | "source"> = {},
    options?: JobOptions,
  ): PendingJob {
    return this.run({ kind: "code", language, source, ...more }, options);
  }

  write(
    path: string,
    content: string | Uint8Array,
    more: More<"write", "path" | "content" | "encoding"> = {},
    options?: JobOptions,
  ): PendingJob {
    return this.run({ kind: "write", path, ...inJson(content), ...more }, options);
  }

  read(path: string, more: More<"read", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "read", path, ...more }, options);
  }

  stat(path: string, more: More<"stat", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "stat", path, ...more }, options);
  }

  list(path = "", more: More<"list", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "list", path, ...more }, options);
  }

  remove(path: string, more: More<"remove", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "remove", path, ...more }, options);
  }

  move(from: string, to: string, more: More<"move", "from" | "to"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "move", from, to, ...more }, options);
  }

  edit(
    path: string,
    find: string,
    replace: string,
    more: More<"edit", "path" | "find" | "replace"> = {},
    options?: JobOptions,
  ): PendingJob {
    return this.run({ kind: "edit", path, find, replace, ...more }, options);
  }

  patch(diff: string, options?: JobOptions): PendingJob {
    return this.run({ kind: "patch", diff }, options);
  }

  grep(pattern: string, more: More<"grep", "pattern"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "grep", pattern, ...more }, options);
  }

  glob(
    patterns: string | readonly string[],
    more: More<"glob", "patterns"> = {},
    options?: JobOptions,
  ): PendingJob {
    return this.run({ kind: "glob", patterns: [patterns].flat(), ...more }, options);
  }

  /** Many files into the workspace, in one job. */
  copy(
    files: Readonly<Record<string, string | Uint8Array>> | readonly CopiedFile[],
    options?: JobOptions,
  ): PendingJob {
    const list = Array.isArray(files)
      ? [...files]
      : Object.entries(files ?? {}).map(([path, content]) => ({ path, ...inJson(content) }));
    return this.run({ kind: "copy", files: list }, options);
  }

  /**
   * `in` unpacks a tar archive, plain or gzipped, into a directory of the workspace; it is given as bytes, or as base64. `out` packs
   * files and directories, by default all there are; `content` of the result's value is the archive as base64.
   */
  archive(...given: ArchiveIn | ArchiveOut): PendingJob {
    if (given[0] === "in") {
      const [, tar, more = {}, options] = given;
      const content = tar instanceof Uint8Array ? Buffer.from(tar).toString("base64") : tar;
      return this.run({ kind: "archive", direction: "in", content, ...more }, options);
    }
    const [direction, paths = "", options] = given;
    return this.run({ kind: "archive", direction, paths: [paths].flat() }, options);
  }

  /** Several things in order, in one trip through the queue. */
  steps(steps: Steps, more: More<"steps", "steps"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "steps", steps, ...more }, options);
  }

  /** Ends the sandbox and removes its workspace and what was persisted in it. What is enqueued afterwards finds an empty one. */
  destroy(options?: JobOptions): PendingJob {
    return this.run({ kind: "destroy" }, options);
  }

  /** Nothing more of this tenant begins until `resume`; what runs ends, what is enqueued waits. */
  pause(): Promise<void> {
    return this.#control.pause(this.id);
  }

  resume(): Promise<void> {
    return this.#control.resume(this.id);
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
