import type { JobRequestInput } from "@berth/protocol";
import { z } from "zod";

/** What the single-job tools have in common. */
export interface JobTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly readOnly: boolean;
  readonly destructive: boolean;
  readonly shape: z.ZodRawShape;
  /** The call's job request; validated like any job's. */
  readonly request: (args: Readonly<Record<string, unknown>>) => JobRequestInput;
  /** The profile it runs under, instead of the sandbox's own. */
  readonly profile?: string | undefined;
}

interface Spec<S extends z.ZodRawShape>
  extends Omit<JobTool, "shape" | "request" | "readOnly" | "destructive"> {
  /** `reads` changes nothing; `adds` destroys nothing. */
  readonly effect: "reads" | "adds" | "changes";
  readonly shape: S;
  readonly request: (args: z.output<z.ZodObject<S>>) => JobRequestInput;
}

function tool<S extends z.ZodRawShape>({ effect, request, ...spec }: Spec<S>): JobTool {
  // Safe: the server parses with this shape before it calls.
  const typed = request as unknown as JobTool["request"];
  return { ...spec, readOnly: effect === "reads", destructive: effect === "changes", request: typed };
}

const filePath = z.string().min(1).describe("path of the file, relative to /workspace or beginning with it");
const directory = z.string().default("").describe("directory to look in; default: /workspace");
const most = (max: number, ordinary: number) => z.number().int().min(1).max(max).default(ordinary);

const running = {
  timeout_ms: z
    .number()
    .int()
    .min(1)
    .max(86_400_000)
    .optional()
    .describe("the command is killed after this long; can only shorten the sandbox's own limit"),
  cwd: z.string().default("").describe("directory to run in; default: /workspace"),
  env: z.record(z.string(), z.string()).default({}).describe("environment variables"),
  stdin: z.string().optional(),
  artifacts: z
    .array(z.string().min(1))
    .max(32)
    .optional()
    .describe("globs of files to keep as artifacts when it ends; the answer links to them"),
};

type Running = z.output<z.ZodObject<typeof running>>;

function runningPart({ timeout_ms, cwd, env, stdin, artifacts }: Running) {
  return {
    cwd,
    env,
    ...(stdin === undefined ? {} : { stdin }),
    ...(artifacts === undefined ? {} : { artifacts }),
    ...(timeout_ms === undefined ? {} : { limits: { timeoutMs: timeout_ms } }),
  };
}

/** Tools that are one job each, in the order of the list. Names and arguments are those that models know. */
export const jobTools: readonly JobTool[] = [
  tool({
    name: "bash",
    title: "Run a command",
    description:
      "Runs a shell command in the sandbox and returns its output and exit code. Files stay between calls; shell variables and " +
      "the working directory do not. Start servers in the background (`cmd > log 2>&1 &`): they keep running. A command that takes " +
      "long is answered with its output so far and a job id; ask for the rest with the tool `job`.",
    effect: "changes",
    shape: { command: z.string().min(1).describe("a line for the shell"), ...running },
    request: ({ command, ...more }) => ({
      kind: "exec",
      argv: ["bash", "-c", command],
      ...runningPart(more),
    }),
  }),
  tool({
    name: "read",
    title: "Read a file",
    description:
      "Returns a text file of the workspace, by lines, or an image (png, jpeg, gif, webp) as an image. For other binary files use bash.",
    effect: "reads",
    shape: {
      file_path: filePath,
      offset: z.number().int().min(1).default(1).describe("first line, counted from 1"),
      limit: most(100_000, 2_000).describe("how many lines"),
    },
    request: ({ file_path, offset, limit }) =>
      isImagePath(file_path)
        ? { kind: "read", path: file_path, as: "bytes" }
        : { kind: "read", path: file_path, line: offset, lines: limit },
  }),
  tool({
    name: "write",
    title: "Write a file",
    description: "Writes a whole file, and makes the directories above it. Replaces what was there.",
    effect: "changes",
    shape: { file_path: filePath, content: z.string() },
    request: ({ file_path, content }) => ({ kind: "write", path: file_path, content }),
  }),
  tool({
    name: "edit",
    title: "Edit a file",
    description:
      "Replaces a piece of text in a file by another. The text must occur exactly once, unless replace_all is set.",
    effect: "changes",
    shape: {
      file_path: filePath,
      old_string: z.string().min(1).describe("the text as it stands in the file, with its indentation"),
      new_string: z.string(),
      replace_all: z.boolean().default(false),
    },
    request: ({ file_path, old_string, new_string, replace_all }) => ({
      kind: "edit",
      path: file_path,
      find: old_string,
      replace: new_string,
      all: replace_all,
    }),
  }),
  tool({
    name: "glob",
    title: "Find files by name",
    description: "Lists the files whose paths match a pattern such as `**/*.ts`.",
    effect: "reads",
    shape: {
      pattern: z.string().min(1),
      path: directory,
      limit: most(10_000, 1_000).describe("how many paths"),
    },
    request: ({ pattern, path, limit }) => ({
      kind: "glob",
      patterns: [pattern],
      base: path,
      maxItems: limit,
    }),
  }),
  tool({
    name: "grep",
    title: "Search in files",
    description: "Finds the lines that match a regular expression, as `path:line:text`.",
    effect: "reads",
    shape: {
      pattern: z.string().min(1).describe("a regular expression"),
      path: directory.describe("file or directory to look in; default: /workspace"),
      glob: z.string().min(1).optional().describe("only in files whose names match, such as `*.ts`"),
      ignore_case: z.boolean().default(false),
      limit: most(10_000, 200).describe("how many lines"),
    },
    request: ({ pattern, path, glob, ignore_case, limit }) => ({
      kind: "grep",
      pattern,
      path,
      regex: true,
      ignoreCase: ignore_case,
      include: glob === undefined ? [] : [glob],
      maxItems: limit,
    }),
  }),
  tool({
    name: "list",
    title: "List a directory",
    description: "Lists a directory of the workspace with sizes; directories end in `/`.",
    effect: "reads",
    shape: {
      path: directory,
      recursive: z.boolean().default(false),
      limit: most(10_000, 1_000).describe("how many entries"),
    },
    request: ({ path, recursive, limit }) => ({ kind: "list", path, recursive, maxItems: limit }),
  }),
  tool({
    name: "run_code",
    title: "Run code",
    description:
      "Runs a program in the sandbox and returns its output and exit code. Each call is a process of its own: write to files what " +
      "the next one needs. Name files in `artifacts` to hand them over.",
    effect: "changes",
    shape: {
      code: z.string().min(1),
      language: z.enum(["python", "javascript", "bash"]).default("python"),
      ...running,
    },
    request: ({ code, language, ...more }) => ({
      kind: "code",
      source: code,
      language: language === "javascript" ? "node" : language,
      ...runningPart(more),
    }),
  }),
];

export function isImagePath(path: string): boolean {
  return /\.(png|jpe?g|gif|webp)$/i.test(path);
}
