import { z } from "zod";
import type { ExecRequest } from "./exec.ts";
import type { ToolDefinition, ToolParameter, ToolSlot } from "./tool.ts";
import { charactersPattern } from "./tool-characters.ts";
import { matchesWildcard } from "./wildcard.ts";
import { withoutWorkspacePrefix, workspaceDirectory, workspacePath } from "./workspace-path.ts";

/** Arguments as they travel in a job. A tool's own schema is stricter. */
export const toolArguments = z
  .record(
    z.string().max(64),
    z.union([z.string().max(65_536), z.number(), z.boolean(), z.array(z.string().max(65_536)).max(256)], {
      error: "an argument is a text, a number, true, false, or a list of texts",
    }),
  )
  .refine((all) => Object.keys(all).length <= 64, { error: "a tool has at most 64 arguments" });
export type ToolArguments = z.infer<typeof toolArguments>;

/** What one call runs. */
export interface PreparedTool {
  readonly command: Pick<ExecRequest, "cwd" | "env" | "limits"> & {
    readonly argv: string[];
    readonly stdin?: string;
    readonly artifacts?: string[];
  };
  /** Paths in the workspace that its arguments name. */
  readonly paths: readonly string[];
}

/** The schema of a tool's arguments. Checks also what JSON Schema cannot express, such as a leading `-`. */
export function toolArgumentsSchema({ parameters }: Pick<ToolDefinition, "parameters">) {
  const shape = Object.entries(parameters).map(([name, parameter]) => {
    const schema = valueSchema(parameter);
    const described = parameter.description === "" ? schema : schema.describe(parameter.description);
    return [name, parameter.required ? described : described.optional()] as const;
  });
  return z.strictObject(Object.fromEntries(shape));
}

function valueSchema(parameter: ToolParameter): z.ZodType {
  switch (parameter.type) {
    case "string":
      if (parameter.enum) return z.enum(parameter.enum as [string, ...string[]]);
      return textSchema(parameter).min(parameter.minLength);
    case "strings":
      return z.array(textSchema(parameter)).max(parameter.maxItems);
    case "path":
      return workspacePath;
    case "boolean":
      return z.boolean();
    case "integer":
      return bounded(z.number().int(), parameter);
    case "number":
      return bounded(z.number(), parameter);
  }
}

function textSchema({
  maxLength,
  characters,
  leadingDash,
}: Extract<ToolParameter, { type: "string" | "strings" }>) {
  const whole = z.string().max(maxLength);
  const allowed =
    characters === undefined
      ? whole.refine((text) => !text.includes("\0"), { error: "it has a NUL byte" })
      : whole.regex(charactersPattern(characters), { error: `it has characters other than ${characters}` });
  return leadingDash
    ? allowed
    : allowed.refine((text) => !text.startsWith("-"), { error: "it begins with -, as an option would" });
}

function bounded(
  schema: z.ZodNumber,
  { minimum, maximum }: { readonly minimum?: number | undefined; readonly maximum?: number | undefined },
) {
  // A negative number begins as an option does. It is allowed only if the operator set a negative minimum.
  const least = minimum ?? (maximum !== undefined && maximum < 0 ? undefined : 0);
  const from = least === undefined ? schema : schema.min(least);
  return maximum === undefined ? from : from.max(maximum);
}

/** The command of a call. The arguments have passed the tool's schema. */
export function toolCommand(
  definition: ToolDefinition,
  given: Readonly<Record<string, unknown>>,
): PreparedTool {
  const { parameters, argv, stdin, cwd, env, timeoutMs, artifacts } = definition;
  const givenFor = ({ param }: ToolSlot): unknown => {
    const value = given[param];
    const isPath = parameters[param]?.type === "path" && value !== undefined;
    return isPath ? absolutePath(String(value)) : value;
  };
  const textOf = (part: string | ToolSlot): string | undefined => {
    const value = typeof part === "string" ? part : givenFor(part);
    return value === undefined ? undefined : String(value);
  };
  const variables = Object.entries(env).flatMap(([name, part]) => {
    const value = textOf(part);
    return value === undefined ? [] : [[name, value] as const];
  });
  const input = stdin === undefined ? undefined : textOf(stdin);
  return {
    command: {
      argv: argv.flatMap((part) => (typeof part === "string" ? [part] : argumentsOf(part, givenFor(part)))),
      cwd: textOf(cwd) ?? "",
      env: Object.fromEntries(variables),
      ...(input === undefined ? {} : { stdin: input }),
      ...(timeoutMs === undefined ? {} : { limits: { timeoutMs } }),
      ...(artifacts.length === 0 ? {} : { artifacts: [...artifacts] }),
    },
    paths: Object.entries(parameters).flatMap(([name, { type }]) => {
      const value = given[name];
      return type === "path" && typeof value === "string" ? [withoutWorkspacePrefix(value)] : [];
    }),
  };
}

function argumentsOf({ flag }: ToolSlot, value: unknown): string[] {
  if (value === undefined || value === false) return [];
  if (value === true) return flag === undefined ? [] : [flag];
  const values = Array.isArray(value) ? value.map(String) : [String(value)];
  return values.flatMap((one) => (flag === undefined ? [one] : [flag, one]));
}

/** Absolute, so that it works in every directory and is not an option if it begins with `-`. */
function absolutePath(path: string): string {
  const inside = withoutWorkspacePrefix(path);
  return inside === "" ? workspaceDirectory : `${workspaceDirectory}/${inside}`;
}

/** Why the job may not use the tool; undefined if it may. */
export function toolRefusal(
  { tenants, agents, profile }: Pick<ToolDefinition, "tenants" | "agents" | "profile">,
  job: {
    readonly tenant: string;
    readonly agent?: string | undefined;
    readonly profile?: string | undefined;
  },
): string | undefined {
  const { tenant, agent = "default" } = job;
  const fits = (patterns: readonly string[], name: string) =>
    patterns.length === 0 || patterns.some((pattern) => matchesWildcard(pattern, name));
  if (!fits(tenants, tenant) || !fits(agents, agent)) return "there is no such tool";
  if (profile !== undefined && job.profile !== undefined && job.profile !== profile)
    return `it runs under the profile ${profile} only, and the job has ${job.profile}`;
  return undefined;
}
