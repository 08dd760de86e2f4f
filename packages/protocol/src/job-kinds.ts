import { z } from "zod";
import { artifactId } from "./artifact.ts";
import { execShape, hasOneForm, notOneForm, type OneForm } from "./exec.ts";
import { snapshotName } from "./snapshot.ts";
import { toolName } from "./tool.ts";
import { toolArguments } from "./tool-command.ts";
import { visibleFilePath, visiblePath, workspaceFilePath, workspacePath } from "./workspace-path.ts";

/** Maximum of file content in a result, and of content that a job processes in memory. */
export const maxInlineBytes = 1024 * 1024;
/** A larger request (as JSON) is staged beside the queue. */
export const stagedAboveBytes = 256 * 1024;
/** A larger request (as JSON) is refused. */
export const maxRequestBytes = 64 * 1024 * 1024;
/** Leaves room for the rest of the request and for JSON escapes. */
const maxContentLength = 48 * 1024 * 1024;

const positive = z.number().int().positive();
const offset = z.number().int().min(0);
const mode = z.number().int().min(0).max(0o777);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: "a sha256 is 64 hexadecimal digits" });

/** Bytes in JSON: text as it is, anything else in base64. */
const content = {
  content: z.string().max(maxContentLength, {
    error: `content is at most ${maxContentLength} characters long; write it in parts, with append`,
  }),
  encoding: z.enum(["utf8", "base64"]).default("utf8"),
};

const globPattern = z.string().min(1).max(1024);
const artifacts = z
  .array(globPattern)
  .max(32)
  .optional()
  .describe("globs of files that are kept as artifacts when the job ends");

/** Validates base64, because Node decodes any text and skips what is invalid. */
const isSound = ({ content, encoding }: { content: string; encoding: "utf8" | "base64" }) =>
  encoding === "utf8" || z.base64().safeParse(content).success;
const notBase64 = { path: ["content"], error: "it is not base64" };

const newFiles = z
  .boolean()
  .optional()
  .describe("keep what the command made or changed anywhere in the workspace; not hidden files, at most 32");

const stdin = z
  .string()
  .max(maxContentLength, {
    error: `stdin is at most ${maxContentLength} characters long; write it to a file and read that`,
  })
  .optional();

const execObject = z
  .strictObject({ kind: z.literal("exec"), ...execShape, artifacts, newFiles, stdin })
  .refine(hasOneForm, notOneForm);
const execKind = execObject as unknown as z.ZodType<
  OneForm<z.infer<typeof execObject>>,
  OneForm<z.input<typeof execObject>>
> &
  z.core.$ZodTypeDiscriminable;

const codeKind = z.strictObject({
  kind: z.literal("code"),
  language: z.enum(["python", "node", "bash", "sh"]),
  source: z.string().max(maxInlineBytes, {
    error: `source is at most ${maxInlineBytes} characters long; write it to files and run those`,
  }),
  args: z.array(execShape.argv.unwrap().element).max(256).default([]),
  cwd: execShape.cwd,
  env: execShape.env,
  stdin,
  limits: execShape.limits,
  artifacts,
  newFiles,
});

const writeKind = z
  .strictObject({
    kind: z.literal("write"),
    path: workspaceFilePath,
    ...content,
    mode: mode.optional(),
    append: z.boolean().default(false),
    mustNotExist: z.boolean().default(false),
    ifMatch: sha256.optional(),
    persist: z
      .boolean()
      .default(false)
      .describe("also kept as an artifact, which later reads of the same agent and session find first"),
  })
  .refine(isSound, notBase64)
  .refine(({ append, persist }) => !(append && persist), {
    path: ["persist"],
    error: "what is persisted is a whole file; write all of it instead of appending",
  });

const readKind = z.strictObject({
  kind: z.literal("read"),
  path: visibleFilePath.describe("of the file; with `artifact`, how messages name it"),
  artifact: artifactId
    .optional()
    .describe("an artifact of the same tenant instead of a file, also of another session or agent"),
  as: z.enum(["text", "bytes"]).default("text"),
  line: positive.default(1).describe("first line, counted from 1; text only"),
  lines: positive.max(1_000_000).default(2_000).describe("how many lines; text only"),
  offset: offset.default(0).describe("first byte; bytes only"),
  bytes: positive.max(maxInlineBytes).default(maxInlineBytes).describe("how many bytes; bytes only"),
});

const statKind = z.strictObject({
  kind: z.literal("stat"),
  path: visiblePath,
  hash: z.boolean().default(false),
});

const listKind = z.strictObject({
  kind: z.literal("list"),
  path: visiblePath.default(""),
  recursive: z.boolean().default(false),
  maxItems: positive.max(10_000).default(1_000),
});

const removeKind = z.strictObject({
  kind: z.literal("remove"),
  path: workspaceFilePath,
  recursive: z.boolean().default(false),
  missingOk: z.boolean().default(false),
});

const moveKind = z.strictObject({
  kind: z.literal("move"),
  from: workspaceFilePath,
  to: workspaceFilePath,
  overwrite: z.boolean().default(false),
});

const editText = z.string().max(maxInlineBytes, {
  error: `an edit's text is at most ${maxInlineBytes} characters long; write the whole file instead`,
});

const editKind = z.strictObject({
  kind: z.literal("edit"),
  path: workspaceFilePath,
  find: editText.min(1),
  replace: editText,
  all: z.boolean().default(false).describe("replace every match; otherwise there must be exactly one"),
});

const patchKind = z.strictObject({
  kind: z.literal("patch"),
  diff: z
    .string()
    .min(1)
    .max(maxInlineBytes, {
      error: `a diff is at most ${maxInlineBytes} characters long; split it by file, or write whole files`,
    })
    .describe("a unified diff; applied to all its files or to none"),
});

const grepKind = z.strictObject({
  kind: z.literal("grep"),
  pattern: z.string().min(1).max(4096),
  path: visiblePath.default(""),
  regex: z.boolean().default(false),
  ignoreCase: z.boolean().default(false),
  include: z.array(globPattern).max(32).default([]),
  maxItems: positive.max(10_000).default(200),
});

const globKind = z.strictObject({
  kind: z.literal("glob"),
  patterns: z.array(globPattern).min(1).max(32),
  base: visiblePath.default(""),
  dot: z.boolean().default(false),
  maxItems: positive.max(10_000).default(1_000),
});

const copyKind = z.strictObject({
  kind: z.literal("copy"),
  files: z
    .array(
      z
        .strictObject({ path: workspaceFilePath, ...content, mode: mode.optional() })
        .refine(isSound, notBase64),
    )
    .min(1)
    .max(10_000),
});

const archiveKind = z.discriminatedUnion("direction", [
  z.strictObject({
    kind: z.literal("archive"),
    direction: z.literal("in"),
    path: workspacePath.default(""),
    content: z.base64().max(maxContentLength, {
      error: `an archive is at most ${maxContentLength} characters of base64; send several`,
    }),
  }),
  z.strictObject({
    kind: z.literal("archive"),
    direction: z.literal("out"),
    paths: z.array(workspacePath).min(1).max(1_000).default([""]),
  }),
]);

const fetchKind = z.strictObject({
  kind: z.literal("fetch"),
  url: z
    .string()
    .min(1)
    .max(8192)
    .describe(
      "http: or https:; its host and port, and those of each redirect, have to be in the profile's egress",
    ),
  path: workspaceFilePath,
  maxBytes: positive
    .max(16 * 1024 * maxInlineBytes)
    .default(100 * maxInlineBytes)
    .describe("a larger body is refused"),
  timeoutMs: positive.max(3_600_000).default(60_000).describe("for all of it"),
  sha256: sha256.optional().describe("the file is kept only if it has this hash"),
});

const toolKind = z.strictObject({
  kind: z.literal("tool"),
  name: toolName.describe("of a custom tool that the operator defined"),
  args: toolArguments.default({}).describe("by its parameters; the worker checks them"),
});

/**
 * Lists the valid kinds on an error, because a wrong kind is mostly a typing mistake. A discriminated union tries only the form of
 * the given kind; an ordinary one would collect the problems of every form, for every step.
 */
const knownKind = {
  error: (issue: { code?: string; input?: unknown; options?: unknown }) => {
    if (issue.code !== "invalid_union" || !Array.isArray(issue.options)) return undefined;
    const { kind } = issue.input as { kind?: unknown };
    const given =
      typeof kind === "string" ? `there is no kind "${kind.slice(0, 40)}"` : "the kind is missing";
    return `${given}; the kinds are ${issue.options.join(", ")}`;
  },
};

/** One thing a job does. Everything but `steps`, which contains these. */
export const step = z.discriminatedUnion(
  "kind",
  [
    execKind,
    codeKind,
    writeKind,
    readKind,
    statKind,
    listKind,
    removeKind,
    moveKind,
    editKind,
    patchKind,
    grepKind,
    globKind,
    copyKind,
    archiveKind,
    fetchKind,
    toolKind,
  ],
  knownKind,
);
export type Step = z.infer<typeof step>;

const stepsKind = z.strictObject({
  kind: z.literal("steps"),
  steps: z.array(step).min(1).max(1_000),
  onFailure: z.enum(["stop", "continue"]).default("stop"),
});

/** Removes the sandbox: its container, workspace and persisted files. Later jobs find an empty one. */
const destroyKind = z.strictObject({ kind: z.literal("destroy") });

/** Ends the container and everything in it. The workspace stays, and the next job gets a fresh container. */
const stopKind = z.strictObject({ kind: z.literal("stop") });

/** Saves the workspace under a name of the tenant's. Background processes are ended first. */
const snapshotKind = z.strictObject({
  kind: z.literal("snapshot"),
  name: z.string().pipe(snapshotName),
  ttlMs: positive
    .max(366 * 86_400_000)
    .optional()
    .describe("it is removed so long after it was made; absent: it stays until it is removed"),
  replace: z.boolean().default(false).describe("replace a snapshot of that name"),
});

/** Replaces the workspace by a snapshot's files; everything else in it is removed. */
const restoreKind = z.strictObject({ kind: z.literal("restore"), name: z.string().pipe(snapshotName) });

export const jobRequest = z.discriminatedUnion(
  "kind",
  [...step.options, stepsKind, destroyKind, stopKind, snapshotKind, restoreKind],
  knownKind,
);
export type JobRequest = z.infer<typeof jobRequest>;
export type JobRequestInput = z.input<typeof jobRequest>;
/** Concerns the whole workspace: nothing else runs in the sandbox meanwhile. */
export type WorkspaceRequest = Extract<JobRequest, { kind: "snapshot" | "restore" }>;
/** Kinds that run inside the sandbox. Others end the sandbox or container, or copy the workspace, from outside. */
export type SandboxRequest = Exclude<JobRequest, WorkspaceRequest | { kind: "destroy" | "stop" }>;
export type JobKind = JobRequest["kind"];
export type ToolRequest = Extract<Step, { kind: "tool" }>;

export function isWorkspaceRequest(request: JobRequest): request is WorkspaceRequest {
  return request.kind === "snapshot" || request.kind === "restore";
}

/** Whether the request only ends the sandbox or its container. It runs nothing, so it is always possible. */
export function isEnding({ kind }: JobRequest): boolean {
  return kind === "destroy" || kind === "stop";
}

/** Kinds that only read or remove. A move adds no bytes, and a snapshot has ceilings of its own. */
const fillNothing: ReadonlySet<JobKind> = new Set([
  ...(["read", "stat", "list", "grep", "glob"] as const),
  ...(["remove", "move", "destroy", "stop", "snapshot"] as const),
]);

/** Whether a job may add bytes to the workspace. */
export function fillsWorkspace(request: JobRequest): boolean {
  if (request.kind === "steps") return request.steps.some(fillsWorkspace);
  if (request.kind === "archive") return request.direction === "in";
  return !fillNothing.has(request.kind);
}

/** Kinds that can be run again without harm when it is unknown whether they ran. */
const repeatable: ReadonlySet<JobKind> = new Set([
  ...(["read", "stat", "list", "grep", "glob"] as const),
  ...(["destroy", "stop", "snapshot", "restore"] as const),
]);

/** Whether a job whose worker died may simply run again: it sets `idempotent`, only reads, or writes a whole file. */
export function isRepeatable(request: JobRequest, idempotent: boolean): boolean {
  if (idempotent || repeatable.has(request.kind)) return true;
  switch (request.kind) {
    case "write":
      return !request.append && !request.mustNotExist && request.ifMatch === undefined;
    case "copy":
      return true;
    case "archive":
      return true;
    case "remove":
      return request.missingOk;
    case "steps":
      return request.steps.every((one) => isRepeatable(one, false));
    default:
      return false;
  }
}
