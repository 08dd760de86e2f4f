import {
  artifactId,
  artifactRef,
  givenSession,
  givenTenant,
  type jobRequest,
  outcome,
  tenantId,
} from "@berth/protocol";
import { z } from "zod";
import { input, output } from "./registry.ts";

const positive = z.number().int().positive();

export const defaultTenant = tenantId.parse("default");

/** The caller's sandbox: each session has its own container and workspace. */
export const where = {
  tenant_id: givenTenant.optional().describe("with a tenant key: its own; otherwise `default` when absent"),
  session_id: givenSession.default("main"),
};

const running = {
  timeout: z.number().positive().max(86_400).optional().describe("seconds; may only tighten the profile's"),
  env: z.record(z.string(), z.string()).default({}),
  stdin: z.string().optional(),
  cwd: z.string().default(""),
  artifacts: z.array(z.string().min(1)).max(32).optional().describe("globs of files to keep as artifacts"),
  new_files: z
    .boolean()
    .default(true)
    .describe(
      "keep files that the command makes or changes anywhere in the workspace; not hidden ones, at most 32",
    ),
  block: z.boolean().default(false).describe("frame the answer's text with [/exec …] and [END EXEC]"),
};

export const execute = input(
  "SandboxExecute",
  z.strictObject({
    ...where,
    code: z.string(),
    language: z
      .enum(["python", "bash", "sh", "node", "javascript"])
      .default("python")
      .describe("refused where the image has no such program; Berth's own have all of them"),
    ...running,
  }),
);
export const bash = input("SandboxBash", z.strictObject({ ...where, command: z.string(), ...running }));
export const read = input(
  "SandboxRead",
  z.strictObject({
    ...where,
    path: z.string().default("").describe("of a file; needed unless `artifact` is given"),
    artifact: artifactId.optional().describe("an artifact of the same tenant instead of a file"),
    offset: positive.default(1).describe("first line, counted from 1"),
    limit: positive.max(1_000_000).default(2_000).describe("how many lines"),
  }),
);
export const readBinary = input(
  "SandboxReadBinary",
  z.strictObject({
    ...where,
    path: z.string(),
    offset: z.number().int().min(0).default(0).describe("first byte"),
    limit: positive.max(1_048_576).default(1_048_576).describe("how many bytes"),
  }),
);
export const write = input(
  "SandboxWrite",
  z.strictObject({
    ...where,
    path: z.string(),
    content: z.string(),
    encoding: z.enum(["utf8", "base64"]).default("utf8"),
    append: z.boolean().default(false),
  }),
);
export const grep = input(
  "SandboxGrep",
  z.strictObject({
    ...where,
    pattern: z.string(),
    path: z.string().default(""),
    regex: z.boolean().default(true),
    ignore_case: z.boolean().default(false),
    include: z.array(z.string().min(1)).max(32).default([]).describe("globs of file names"),
    limit: positive.max(10_000).default(200),
  }),
);
export const glob = input(
  "SandboxGlob",
  z.strictObject({
    ...where,
    pattern: z.string().min(1),
    path: z.string().default(""),
    dot: z.boolean().default(false),
    limit: positive.max(10_000).default(1_000),
  }),
);
export const edit = input(
  "SandboxEdit",
  z.strictObject({
    ...where,
    path: z.string(),
    old_text: z.string(),
    new_text: z.string(),
    replace_all: z.boolean().default(false).describe("otherwise there must be exactly one match"),
  }),
);
export const patch = input(
  "SandboxPatch",
  z.strictObject({ ...where, diff: z.string().describe("unified; applied to all its files or to none") }),
);
export const list = input(
  "SandboxList",
  z.strictObject({
    ...where,
    path: z.string().default(""),
    recursive: z.boolean().default(false),
    limit: positive.max(10_000).default(1_000),
  }),
);
export const stat = input(
  "SandboxStat",
  z.strictObject({ ...where, path: z.string(), hash: z.boolean().default(false) }),
);
export const copyIn = input(
  "SandboxCopy",
  z.strictObject({
    files: z
      .array(
        z.strictObject({
          path: z.string(),
          content: z.string(),
          encoding: z.enum(["utf8", "base64"]).default("utf8"),
        }),
      )
      .min(1)
      .max(10_000),
  }),
);

const artifact = artifactRef.extend({ url: z.string().describe("where its bytes are") });

export const ran = output(
  "SandboxRun",
  z.object({
    job_id: z.string(),
    outcome,
    exit_code: z.number().nullable().describe("the shell's convention; null where no command ran to an end"),
    stdout: z.string(),
    stderr: z.string(),
    text: z
      .string()
      .describe("what an agent reads: both outputs as they were written, cut when long, then how it ended"),
    cut_bytes: z.number().describe("output that was not kept"),
    duration_ms: z.number(),
    artifacts: z.array(artifact),
  }),
);
const entry = output(
  "SandboxEntry",
  z.object({
    path: z.string(),
    type: z.enum(["file", "directory", "symlink", "other"]),
    size: z.number(),
    mode: z.number(),
    modified_ms: z.number(),
    target: z.string().optional(),
  }),
);
export const readAnswer = z.object({
  path: z.string(),
  content: z.string(),
  first_line: z.number(),
  last_line: z.number(),
  more: z.boolean(),
});
export const binaryAnswer = z.object({
  path: z.string(),
  content: z.string(),
  encoding: z.literal("base64"),
  size: z.number().describe("of the whole file"),
});
export const written = z.object({
  path: z.string(),
  size: z.number(),
  sha256: z.string(),
  created: z.boolean(),
});
export const edited = z.object({ path: z.string(), count: z.number(), size: z.number(), sha256: z.string() });
export const counted = z.object({ count: z.number().describe("files") });
export const matched = z.object({
  matches: z.array(z.object({ path: z.string(), line: z.number(), text: z.string(), cut: z.boolean() })),
  truncated: z.boolean(),
});
export const found = z.object({ paths: z.array(z.string()), truncated: z.boolean() });
export const listed = z.object({
  entries: z.array(entry),
  persisted: z.array(artifact).describe("what the session had persisted there"),
  truncated: z.boolean(),
  text: z.string().describe("the same as an agent reads it: what is persisted, then `[sandbox workspace]`"),
});
export const statAnswer = z.object({ entry, sha256: z.string().optional() });
export const stillRunning = output(
  "SandboxPending",
  z.object({
    job_id: z.string(),
    url: z.string().describe("the job, which has the result once it has ended"),
  }),
);

/** Converts a call to a job request, which is then validated with its own limits and paths. */
export type Request = z.input<typeof jobRequest>;
