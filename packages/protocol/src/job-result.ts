import { z } from "zod";
import { artifactRef, artifactRefusal } from "./artifact.ts";
import { type EgressUse, egressUse } from "./egress-use.ts";
import { fileEntry, grepMatch } from "./files.ts";
import type { JobKind } from "./job-kinds.ts";
import { type Labels, labels } from "./labels.ts";
import { outcome } from "./outcome.ts";
import { snapshotMethod } from "./snapshot.ts";

const count = z.number().int().min(0);

export const jobTiming = z.strictObject({
  wallMs: z.number().min(0),
  cpuMs: z.number().min(0),
  queuedAtMs: count.exactOptional().describe("epoch ms; when its last run was queued, by its producer"),
  startedAtMs: count.exactOptional().describe("epoch ms; absent when it did not begin"),
  finishedAtMs: count.exactOptional().describe("epoch ms"),
});

export const jobUsage = z
  .strictObject({
    inBytes: count.exactOptional().describe("of the job as it was submitted, as JSON; absent of a step"),
    outBytes: count.describe(
      "that a command wrote, kept or not, or of what was read and found; and of the artifacts that were kept",
    ),
    peakMemoryBytes: count
      .exactOptional()
      .describe("of a command: the largest resident set of any one of its processes"),
  })
  .describe("what the job used besides time: its last run's");
export type JobUsage = Readonly<z.infer<typeof jobUsage>>;

/** Every field besides the outcome that a job of any kind may leave. */
export const jobValue = z
  .strictObject({
    stdout: z.string().exactOptional(),
    stderr: z.string().exactOptional(),
    cutBytes: count.exactOptional().describe("output bytes that were not kept"),
    content: z.string().exactOptional(),
    encoding: z.enum(["utf8", "base64"]).exactOptional(),
    sha256: z.string().exactOptional(),
    size: count.exactOptional(),
    created: z.boolean().exactOptional(),
    url: z.string().exactOptional().describe("of fetch: after redirects"),
    status: count.exactOptional().describe("of fetch: the HTTP status"),
    type: z.string().exactOptional().describe("of fetch: the Content-Type, as the server has it"),
    redirects: count.exactOptional().describe("of fetch: how many were followed"),
    count: count.exactOptional(),
    lines: z.strictObject({ first: count, last: count, more: z.boolean() }).exactOptional(),
    entries: z.array(fileEntry).readonly().exactOptional(),
    matches: z.array(grepMatch).readonly().exactOptional(),
    truncated: z.boolean().exactOptional(),
    scrubbed: count
      .exactOptional()
      .describe("places where a secret was masked, with as many asterisks as it has bytes; absent: none"),
    artifacts: z
      .array(artifactRef)
      .readonly()
      .exactOptional()
      .describe("what was kept of the files the job left"),
    artifactsRefused: z
      .array(artifactRefusal)
      .readonly()
      .exactOptional()
      .describe("files that were not kept; at most the first twenty of artifactsRefusedCount"),
    artifactsRefusedCount: count.exactOptional(),
    persisted: z
      .array(artifactRef)
      .readonly()
      .exactOptional()
      .describe(
        "of list and remove: what the conversation had persisted there; of read: that it was read instead of the workspace's file",
      ),
    name: z.string().exactOptional().describe("of snapshot and restore: the snapshot's"),
    method: snapshotMethod
      .exactOptional()
      .describe("of snapshot and restore: how the files were had; `btrfs` and `reflink` copy no bytes"),
    expiresAtMs: count.exactOptional().describe("of snapshot: epoch ms; absent: it stays"),
    get steps() {
      return z.array(jobResult).readonly().exactOptional().describe("of steps: the result of each that ran");
    },
  })
  .describe("what the job left, by its kind");

export const jobResult: z.ZodType<JobResult> = z.strictObject({
  outcome,
  value: jobValue,
  timing: jobTiming,
  usage: jobUsage.exactOptional(),
  egress: egressUse.exactOptional(),
  labels: labels.exactOptional().describe("the job's own"),
  worker: z.string().exactOptional().describe("which ran it; for admin keys"),
  host: z.string().exactOptional().describe("of that worker; for admin keys"),
  text: z
    .string()
    .exactOptional()
    .describe(
      "what an agent reads: the output of a command, both streams as they were written, and how it ended; of other kinds, why it was not done",
    ),
});

export type JobValue = Readonly<z.infer<typeof jobValue>>;

const { shape } = jobValue;
const { artifacts, artifactsRefused, artifactsRefusedCount, lines, persisted, scrubbed, sha256, truncated } =
  shape;
const kept = { artifacts, artifactsRefused, artifactsRefusedCount };
const needed = jobValue.omit({ steps: true }).required().shape;

const command = z.strictObject({
  ...{ stdout: needed.stdout, stderr: needed.stderr, cutBytes: needed.cutBytes },
  scrubbed,
  ...kept,
});
const written = { size: needed.size, sha256: needed.sha256 };
const counted = z.strictObject({ count: needed.count });
const found = { count: needed.count, truncated: needed.truncated, scrubbed };
const copied = counted.extend({ name: needed.name, size: needed.size, method: needed.method });
const content = { content: needed.content, encoding: needed.encoding, size: needed.size };

/**
 * The value of a finished job, by kind. A command's `stdout`, `stderr` and `cutBytes` are present for every outcome; jobs of other
 * kinds that did not succeed may lack fields.
 */
export const jobValues = {
  exec: command,
  code: command,
  tool: command,
  write: z.strictObject({ ...written, created: needed.created, ...kept }),
  read: z.strictObject({ ...content, sha256, lines, truncated, persisted, scrubbed }),
  stat: z.strictObject({ entries: needed.entries, size: needed.size, sha256, scrubbed }),
  list: z.strictObject({ entries: needed.entries, ...found, persisted }),
  remove: counted.extend({ persisted }),
  move: z.strictObject({}),
  edit: z.strictObject({ ...written, count: needed.count }),
  patch: counted,
  grep: z.strictObject({ matches: needed.matches, ...found }),
  glob: z.strictObject({ entries: needed.entries, ...found }),
  copy: counted.extend({ size: needed.size }),
  fetch: z.strictObject({
    ...written,
    ...{ url: needed.url, status: needed.status, redirects: needed.redirects, type: shape.type },
  }),
  archive: counted.extend({ size: needed.size, content: shape.content, encoding: shape.encoding, scrubbed }),
  steps: z.strictObject({
    get steps() {
      return z.array(jobResult).readonly();
    },
  }),
  destroy: z.strictObject({}),
  stop: z.strictObject({}),
  snapshot: copied.extend({ expiresAtMs: shape.expiresAtMs }),
  restore: copied,
} satisfies Record<JobKind, z.ZodType<JobValue>>;

export type ValueOf<K extends JobKind> = Readonly<z.infer<(typeof jobValues)[K]>>;
type CommandKind = "exec" | "code" | "tool";

/** The result of a job of known kind, with the fields of `value` at its top level. */
export type ResultOf<K extends JobKind> = Pick<JobResult, "outcome" | "timing" | "usage" | "egress"> &
  (JobKind extends K
    ? JobValue & Pick<JobResult, "text">
    : K extends CommandKind
      ? ValueOf<K> & { readonly text: string }
      : Partial<ValueOf<K>> & Pick<JobResult, "text">);

export function flatResult<K extends JobKind>(
  kind: K | undefined,
  { outcome, value, timing, usage, egress, text }: JobResult,
): ResultOf<K> {
  const ofCommand =
    kind === "exec" || kind === "code" || kind === "tool" ? { stdout: "", stderr: "", cutBytes: 0 } : {};
  const used = {
    ...(usage === undefined ? {} : { usage }),
    ...(egress === undefined ? {} : { egress }),
  };
  const flat = { outcome, ...ofCommand, ...value, timing, ...used, ...(text === undefined ? {} : { text }) };
  return flat as unknown as ResultOf<K>;
}

export type JobTiming = Readonly<z.infer<typeof jobTiming>>;

export interface JobResult {
  readonly outcome: z.infer<typeof outcome>;
  readonly value: JobValue;
  readonly timing: JobTiming;
  /** Absent if no worker took the job, or one of an older version did. */
  readonly usage?: JobUsage;
  /** Absent if nothing was sent. */
  readonly egress?: EgressUse;
  /** The job's own; absent when it has none. */
  readonly labels?: Labels;
  /** The worker and host that ran it. Absent if none did, and for tenant keys. */
  readonly worker?: string;
  readonly host?: string;
  /** The text for agents. Redis does not store it; readers add it. Absent from `done` results and from those with steps. */
  readonly text?: string;
}
