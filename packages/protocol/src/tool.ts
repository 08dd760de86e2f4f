import { z } from "zod";
import { variableName } from "./environment-names.ts";
import { profileName } from "./ids.ts";
import { isCharacterList } from "./tool-characters.ts";
import { workspacePath } from "./workspace-path.ts";

/** Names of MCP's own tools, which no custom tool may take. */
const reservedToolNames: readonly string[] = [
  ...["bash", "read", "write", "edit", "glob", "grep", "list", "run_code", "job", "sandbox"],
  // Reserved for future tools, which must not hide an operator's.
  ...["exec", "code", "fetch", "process", "tool", "session", "approvals"],
];

export const toolName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,47}$/, {
    error: "a tool's name is 1 to 48 of a-z, 0-9, - and _, and begins with a letter",
  })
  .refine((name) => !reservedToolNames.includes(name), {
    error: "that is the name of one of Berth's own tools",
  });

const parameterName = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,47}$/, {
    error: "a parameter's name is 1 to 48 of a-z, 0-9 and _, and begins with a letter",
  })
  .refine((name) => name !== "session", { error: "session is what MCP calls the job's session" });

const longestText = 65_536;
const noNul = (text: string) => !text.includes("\0");
const literal = z.string().max(longestText).refine(noNul, { error: "it has a NUL byte" });

const common = {
  description: z.string().max(1_024).default("").describe("what a model reads about it"),
  required: z
    .boolean()
    .default(true)
    .describe("false: it may be left out, and then so is what it stands for"),
};
const text = {
  maxLength: z.number().int().min(1).max(longestText).default(4_096),
  characters: z
    .string()
    .min(1)
    .max(256)
    .refine(isCharacterList, {
      error: "it is printable ASCII characters and ranges of them, such as a-z0-9._-",
    })
    .optional()
    .describe("the only characters that it may have, such as `a-z0-9._-`; any when absent"),
  leadingDash: z
    .boolean()
    .default(false)
    .describe("true: it may begin with `-`, which most programs take for an option"),
};

/** A caller's argument. `path` is a workspace path; the program gets it as an absolute path. */
export const toolParameter = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("string"),
    ...common,
    ...text,
    minLength: z.number().int().min(0).max(longestText).default(0),
    enum: z.array(literal.min(1)).min(1).max(256).optional().describe("the only values that it may have"),
  }),
  z.strictObject({ type: z.literal("path"), ...common }),
  z.strictObject({
    type: z.literal("integer"),
    ...common,
    minimum: z.number().int().optional(),
    maximum: z.number().int().optional(),
  }),
  z.strictObject({
    type: z.literal("number"),
    ...common,
    minimum: z.number().optional(),
    maximum: z.number().optional(),
  }),
  z.strictObject({ type: z.literal("boolean"), ...common }),
  z.strictObject({
    type: z.literal("strings"),
    ...common,
    ...text,
    maxItems: z.number().int().min(1).max(256).default(64),
  }),
]);
export type ToolParameter = z.infer<typeof toolParameter>;

const slot = z.strictObject({
  param: parameterName,
  flag: literal
    .min(1)
    .optional()
    .describe(
      "goes before the value, and is left out with it; of a boolean: instead of the value, when it is true",
    ),
});
export type ToolSlot = z.infer<typeof slot>;

const literalOrSlot = z.union([literal, slot], { error: "it is a text, or {param: NAME}" });
const patterns = z.array(z.string().min(1).max(128)).max(256).default([]);

/** A named command that an operator defines. Parameters become whole arguments, never parts of a shell line. */
export const toolDefinition = z
  .strictObject({
    description: z.string().min(1).max(4_096).describe("what a model reads to decide whether to call it"),
    parameters: z
      .record(parameterName, toolParameter)
      .refine((all) => Object.keys(all).length <= 64, { error: "it has at most 64 parameters" })
      .default({}),
    argv: z
      .array(literalOrSlot)
      .min(1)
      .max(256)
      .describe("the program and its arguments: each a text, or `{param, flag}`"),
    stdin: literalOrSlot.optional().describe("what the program reads from its standard input"),
    cwd: z.union([workspacePath, slot]).default("").describe("directory beneath the workspace"),
    env: z.record(variableName, literalOrSlot).default({}),
    timeoutMs: z.number().int().min(1).max(86_400_000).optional().describe("can only shorten the profile's"),
    artifacts: z
      .array(z.string().min(1).max(1_024))
      .max(32)
      .default([])
      .describe("globs of files that are kept as artifacts when it ends"),
    effect: z
      .enum(["reads", "adds", "changes"])
      .default("changes")
      .describe("a hint for MCP clients: reads changes nothing, adds destroys nothing"),
    profile: z.string().pipe(profileName).optional().describe("it runs under this profile only"),
    tenants: patterns.describe("whose jobs may use it; `*` stands for any characters; empty: all"),
    agents: patterns.describe("the same of agents; a job without one has the agent `default`"),
  })
  .superRefine((definition, context) => {
    for (const { path, problem } of templateProblems(definition))
      context.addIssue({ code: "custom", path: [...path], message: problem });
  });
export type ToolDefinition = z.infer<typeof toolDefinition>;
export type ToolDefinitionInput = z.input<typeof toolDefinition>;

interface TemplateProblem {
  readonly path: readonly (string | number)[];
  readonly problem: string;
}

type Template = {
  readonly parameters: Readonly<Record<string, ToolParameter>>;
  readonly argv: readonly (string | ToolSlot)[];
  readonly stdin?: string | ToolSlot | undefined;
  readonly cwd: string | ToolSlot;
  readonly env: Readonly<Record<string, string | ToolSlot>>;
};

function* templateProblems(template: Template): Generator<TemplateProblem> {
  const { parameters, argv, stdin, cwd, env } = template;
  const used = new Set<string>();
  const typeOf = ({ param }: ToolSlot) => {
    used.add(param);
    return Object.hasOwn(parameters, param) ? parameters[param]?.type : undefined;
  };
  const unknown = ({ param }: ToolSlot) => `there is no parameter ${param}`;
  for (const [index, part] of argv.entries()) {
    if (typeof part === "string") continue;
    const path = ["argv", index];
    const type = typeOf(part);
    if (type === undefined) yield { path, problem: unknown(part) };
    if (index === 0) yield { path, problem: "the program is a text, not a parameter" };
    if (type === "boolean" && part.flag === undefined)
      yield { path, problem: "a boolean needs the flag that stands for true" };
    if (isCodeOption(argv, index)) yield { path, problem: "a parameter may not be code for an interpreter" };
  }
  if (argv[0] === "") yield { path: ["argv", 0], problem: "the program has no name" };
  const others = [
    ...(stdin === undefined ? [] : [{ path: ["stdin"], part: stdin }]),
    ...Object.entries(env).map(([name, part]) => ({ path: ["env", name], part })),
  ];
  for (const { path, part } of others) {
    if (typeof part === "string") continue;
    const type = typeOf(part);
    if (type === undefined) yield { path, problem: unknown(part) };
    if (type === "strings") yield { path, problem: "a list can only be in argv" };
    if (part.flag !== undefined) yield { path, problem: "a flag can only be in argv" };
  }
  if (typeof cwd !== "string" && (typeOf(cwd) !== "path" || cwd.flag !== undefined))
    yield { path: ["cwd"], problem: "it is a text, or a parameter of type path" };
  for (const name of Object.keys(parameters))
    if (!used.has(name)) yield { path: ["parameters", name], problem: "nothing uses it" };
}

const interpreters =
  /^(?:.*\/)?(?:sh|bash|dash|ash|zsh|ksh|fish|busybox|python[\d.]*|perl|ruby|node|php|lua|env|su|xargs)$/;
const codeOption = /^(?:-[a-zA-Z]*[ceSr]|--(?:eval|command|print|split-string|run))=?$/;

/** `sh -c {param}` would turn the parameter into a shell line; `python -c` and others into code. */
function isCodeOption(argv: Template["argv"], index: number): boolean {
  const earlier = argv.slice(0, index);
  if (!earlier.some((part) => typeof part === "string" && interpreters.test(part))) return false;
  const own = argv[index];
  const before = typeof own === "object" && own.flag !== undefined ? own.flag : earlier.at(-1);
  return typeof before === "string" && codeOption.test(before);
}
