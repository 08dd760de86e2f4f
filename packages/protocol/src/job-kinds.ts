import { z } from "zod";
import { execShape, hasOneForm, notOneForm, type OneForm } from "./exec.ts";
import { workspaceFilePath, workspacePath } from "./workspace-path.ts";

/** What a result carries of a file, and the most of what a job works on in memory. */
export const maxInlineBytes = 1024 * 1024;
/** A request that is longer as JSON is put beside the queue, never in it. */
export const stagedAboveBytes = 256 * 1024;
/** A request that is longer as JSON is not taken at all. */
export const maxRequestBytes = 64 * 1024 * 1024;
/** Leaves room for the rest of the request and for what JSON adds. */
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

/** Base64 is checked here: Node decodes whatever it is given, and leaves out what it cannot. */
const isSound = ({ content, encoding }: { content: string; encoding: "utf8" | "base64" }) =>
  encoding === "utf8" || z.base64().safeParse(content).success;
const notBase64 = { path: ["content"], error: "it is not base64" };

const stdin = z
  .string()
  .max(maxContentLength, {
    error: `stdin is at most ${maxContentLength} characters long; write it to a file and read that`,
  })
  .optional();

const execObject = z
  .strictObject({ kind: z.literal("exec"), ...execShape, artifacts, stdin })
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
  path: workspaceFilePath,
  as: z.enum(["text", "bytes"]).default("text"),
  line: positive.default(1).describe("first line, counted from 1; text only"),
  lines: positive.max(1_000_000).default(2_000).describe("how many lines; text only"),
  offset: offset.default(0).describe("first byte; bytes only"),
  bytes: positive.max(maxInlineBytes).default(maxInlineBytes).describe("how many bytes; bytes only"),
});

const statKind = z.strictObject({
  kind: z.literal("stat"),
  path: workspacePath,
  hash: z.boolean().default(false),
});

const listKind = z.strictObject({
  kind: z.literal("list"),
  path: workspacePath.default(""),
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
  path: workspacePath.default(""),
  regex: z.boolean().default(false),
  ignoreCase: z.boolean().default(false),
  include: z.array(globPattern).max(32).default([]),
  maxItems: positive.max(10_000).default(200),
});

const globKind = z.strictObject({
  kind: z.literal("glob"),
  patterns: z.array(globPattern).min(1).max(32),
  base: workspacePath.default(""),
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

/**
 * Names the kinds that there are, since a wrong one is mostly a typing mistake. A discriminated union tries only the form
 * of the given kind: an ordinary one would try all of them, and collect the problems of each, for every step.
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

/** One thing a job does. Everything but `steps`, which holds these. */
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
  ],
  knownKind,
);
export type Step = z.infer<typeof step>;

const stepsKind = z.strictObject({
  kind: z.literal("steps"),
  steps: z.array(step).min(1).max(1_000),
  onFailure: z.enum(["stop", "continue"]).default("stop"),
});

/** Ends the sandbox: its container, its workspace and what was persisted in it go. What comes after finds an empty one. */
const destroyKind = z.strictObject({ kind: z.literal("destroy") });

export const jobRequest = z.discriminatedUnion("kind", [...step.options, stepsKind, destroyKind], knownKind);
export type JobRequest = z.infer<typeof jobRequest>;
export type JobRequestInput = z.input<typeof jobRequest>;
/** Everything but the end of the sandbox itself, which is not carried out in it. */
export type SandboxRequest = Exclude<JobRequest, { kind: "destroy" }>;
export type JobKind = JobRequest["kind"];

/** Kinds that can be run again without harm when nobody knows whether they ran. */
const repeatable: ReadonlySet<JobKind> = new Set(["read", "stat", "list", "grep", "glob", "destroy"]);

/** Whether a job whose worker died may simply run again: it says so itself, only reads, or writes a whole file. */
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
