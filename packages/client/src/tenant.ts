import type { JobRequestInput, TenantId } from "@berth/protocol";
import type { Berth, JobOrder } from "./berth.ts";
import type { PendingJob } from "./pending-job.ts";

type OfKind<K extends JobRequestInput["kind"]> = Extract<JobRequestInput, { kind: K }>;
type More<K extends JobRequestInput["kind"], Given extends string> = Omit<OfKind<K>, "kind" | Given>;

/** Everything about a job but what it does. */
export type JobOptions = Omit<JobOrder, "tenant" | "request">;

/** One tenant's work. Each call enqueues a job at once; await it for the result. */
export class Tenant {
  readonly #berth: Berth;
  readonly id: TenantId;

  constructor(berth: Berth, id: TenantId) {
    this.#berth = berth;
    this.id = id;
  }

  run(request: JobRequestInput, options: JobOptions = {}): PendingJob {
    return this.#berth.submit({ ...options, tenant: this.id, request });
  }

  exec(command: string | readonly string[], more: ExecMore = {}, options?: JobOptions): PendingJob {
    const what = typeof command === "string" ? { command } : { argv: [...command] };
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
    const bytes =
      typeof content === "string"
        ? { content, encoding: "utf8" as const }
        : { content: Buffer.from(content).toString("base64"), encoding: "base64" as const };
    return this.run({ kind: "write", path, ...bytes, ...more }, options);
  }

  read(path: string, more: More<"read", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "read", path, ...more }, options);
  }

  list(path = "", more: More<"list", "path"> = {}, options?: JobOptions): PendingJob {
    return this.run({ kind: "list", path, ...more }, options);
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
}

type ExecMore = Pick<OfKind<"exec">, "cwd" | "env" | "stdin" | "limits" | "background">;
