import { z } from "zod";
import type { JobRequest, Step, ToolRequest } from "./job-kinds.ts";
import { argvCommands, codeCommands, isMade, type SeenCommands, shellCommands } from "./shell-commands.ts";
import type { PreparedTool } from "./tool-command.ts";
import { matchesCommand, matchesPath, matchesWildcard } from "./wildcard.ts";
import { withoutWorkspacePrefix } from "./workspace-path.ts";

const pattern = z.string().min(1).max(256);
const patterns = z.array(pattern).max(256).default([]);

const lists = (of: string) =>
  z.strictObject({
    allow: patterns.describe(`${of} that are allowed; empty: all`),
    deny: patterns.describe(`${of} that are refused, also where \`allow\` has them`),
  });

/** One rule. A job passes when it passes all of them, so a further rule can only tighten. */
export const accessRule = z.strictObject({
  kinds: lists("kinds of jobs, such as `exec`, `tool:*` or `tool:lint`").optional(),
  paths: lists("paths of file jobs, such as `src/**`").optional(),
  commands: lists("commands of exec jobs by their words, such as `git push`").optional(),
  approval: z
    .strictObject({
      kinds: patterns.describe("kinds of jobs that need an approval"),
      commands: patterns.describe("commands that need an approval"),
      expiresMs: z
        .number()
        .int()
        .min(1_000)
        .max(30 * 86_400_000)
        .default(86_400_000)
        .describe("how long a job waits for its approval; then it ends as refused"),
    })
    .optional(),
});
export type AccessRule = z.infer<typeof accessRule>;

/** Prepares a custom tool's call: rules apply to the tool's name, and to the command and paths of the call. */
export type PrepareTool = (call: ToolRequest) => PreparedTool;

/** Facts that rules need and that are not in the request. */
export interface Inspection {
  readonly prepare?: PrepareTool | undefined;
  /** The files that a diff changes, parsed as the job parses it; none if the job will refuse the diff. */
  readonly diffPaths?: ((diff: string) => readonly string[]) | undefined;
}

/** Why the rules refuse the request; undefined if they do not. */
export function refusalBy(
  rules: readonly AccessRule[],
  request: JobRequest,
  { prepare = unknownTool, diffPaths = unknownDiff }: Inspection = {},
): string | undefined {
  for (const one of stepsOf(request, prepare))
    for (const rule of rules) {
      const refusal = refusalOf(rule, one, diffPaths);
      if (refusal !== undefined) return refusal;
    }
  return undefined;
}

/** How long the job may wait for an approval; undefined: it needs none. */
export function approvalMs(
  rules: readonly AccessRule[],
  request: JobRequest,
  prepare: PrepareTool = unknownTool,
): number | undefined {
  const waits = stepsOf(request, prepare).flatMap((one) =>
    rules.flatMap(({ approval }) => (approval && needsApproval(approval, one) ? [approval.expiresMs] : [])),
  );
  return waits.length === 0 ? undefined : Math.min(...waits);
}

/** Whether a job may keep or show a file that it found at the path, such as an artifact of a command. */
export function allowsPath(rules: readonly AccessRule[], path: string): boolean {
  const inside = withoutWorkspacePrefix(path);
  return rules.every(({ paths }) => !paths || passes(paths, (text) => matchesPath(text, inside)));
}

type Plain = Exclude<Step | JobRequest, { kind: "tool" }>;
type AnyStep = Plain | (ToolRequest & { readonly prepared: PreparedTool });

/** The job itself and each of its steps: a rule about `steps` is one about the job. */
function stepsOf(request: JobRequest, prepare: PrepareTool): readonly AnyStep[] {
  const all: readonly (Step | JobRequest)[] =
    request.kind === "steps" ? [request, ...request.steps] : [request];
  return all.map((one) => (one.kind === "tool" ? { ...one, prepared: prepare(one) } : one));
}

function unknownTool({ name }: ToolRequest): never {
  throw new TypeError(`rules about the tool ${name} need its definition: pass \`prepare\``);
}

type DiffPaths = NonNullable<Inspection["diffPaths"]>;

function unknownDiff(): never {
  throw new TypeError("rules about a diff need the paths in it: pass `diffPaths`");
}

function refusalOf(
  { kinds, paths, commands }: AccessRule,
  one: AnyStep,
  diffPaths: DiffPaths,
): string | undefined {
  // A tenant can always remove its sandbox.
  if (one.kind === "destroy") return undefined;
  if (kinds && !passes(kinds, isKind(one)))
    return `jobs of the kind ${kindNames(one).at(-1)} are not allowed`;
  const refused = paths && pathRefusal(paths, one, diffPaths);
  if (refused !== undefined) return refused;
  const seen = commands && commandsIn(one);
  return commands && seen && commandRefusal(commands, seen);
}

interface Lists {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

function passes({ allow, deny }: Lists, matches: (pattern: string) => boolean): boolean {
  return !deny.some(matches) && (allow.length === 0 || allow.some(matches));
}

function pathRefusal(paths: Lists, one: AnyStep, diffPaths: DiffPaths): string | undefined {
  for (const path of pathsOf(one, diffPaths)) {
    const shown = path === "" ? "." : path;
    if (!passes(paths, (text) => matchesPath(text, path))) return `the path ${shown} is not allowed`;
    const takes = reachBeneath(one);
    const inside = takes && paths.deny.find((text) => mayBeBeneath(text, path) && !staysDenied(text, one));
    if (inside !== undefined)
      return `${inside} is not allowed, and ${one.kind} of ${shown} would ${takes} it; name a narrower path`;
  }
  return undefined;
}

/** What it does to files beneath its path. */
function reachBeneath(one: AnyStep): "show" | "change" | undefined {
  switch (one.kind) {
    case "list":
      return one.recursive ? "show" : undefined;
    case "grep":
    case "glob":
      return "show";
    case "archive":
      return one.direction === "out" ? "show" : "change";
    case "remove":
      return one.recursive ? "change" : undefined;
    case "move":
      return "change";
    default:
      return undefined;
  }
}

/** A name that is denied in every directory stays denied after its directory was moved. */
function staysDenied(text: string, { kind }: AnyStep): boolean {
  return kind === "move" && /^\*\*\/[^/]+(?:\/\*\*)?$/.test(text);
}

/** Whether the pattern could match a path beneath the directory, judged by the names before its first star. */
function mayBeBeneath(text: string, directory: string): boolean {
  const named = text.split("/").filter((name) => name !== "");
  const literal = named.slice(0, named.findIndex((name) => /[*?]/.test(name)) >>> 0);
  const names = directory.split("/").filter((name) => name !== "");
  const shared = Math.min(literal.length, names.length);
  return literal.slice(0, shared).every((name, index) => name === names[index]);
}

function commandRefusal(
  rule: Lists,
  { commands, inner, hiding, isOpaque, isVector }: SeenCommands,
): string | undefined {
  const matches = (words: readonly string[]) => (text: string) => matchesCommand(text, words);
  const isDenied = (words: readonly string[]) => rule.deny.some((text) => isNamed(text, words));
  const refused =
    commands.find((words) => isDenied(words) || !passes(rule, matches(words))) ?? inner.find(isDenied);
  if (refused) return `the command ${shortened(refused.join(" "))} is not allowed`;
  const unseen = hiding.find((words) => !rule.allow.some(matches(words)));
  if (unseen && rule.deny.length + rule.allow.length > 0)
    return `some commands are not allowed, and what ${shortened(unseen.join(" "))} runs cannot be seen`;
  if (isOpaque && !isVector && rule.allow.length > 0)
    return "only listed commands are allowed, and this one runs more than can be seen";
  return undefined;
}

function needsApproval({ kinds, commands }: NonNullable<AccessRule["approval"]>, one: AnyStep): boolean {
  if (one.kind === "destroy") return false;
  if (kinds.some(isKind(one))) return true;
  const seen = commands.length === 0 ? undefined : commandsIn(one);
  if (!seen) return false;
  const all = [...seen.commands, ...seen.inner];
  const mayBeAny = seen.isVector ? undefined : isMade;
  return seen.isOpaque || all.some((words) => commands.some((text) => isNamed(text, words, mayBeAny)));
}

/** Also where the program is named with its directory. `allow` needs the same words: another directory's program is another one. */
function isNamed(text: string, words: readonly string[], mayBeAny?: (word: string) => boolean): boolean {
  const [program = "", ...rest] = words;
  const name = program.slice(program.lastIndexOf("/") + 1);
  return [words, [name, ...rest]].some((one) => matchesCommand(text, one, mayBeAny));
}

/** Undefined: the step runs no command. */
function commandsIn(one: AnyStep): SeenCommands | undefined {
  switch (one.kind) {
    case "tool":
      return argvCommands(one.prepared.command.argv);
    case "exec":
      return one.argv === undefined ? shellCommands(one.command) : argvCommands(one.argv);
    case "code":
      return codeCommands(one.language, one.source);
    default:
      return undefined;
  }
}

/** A custom tool has its own kind, `tool:NAME`, and the kind `tool`. */
function kindNames(one: AnyStep): readonly string[] {
  return one.kind === "tool" ? [one.kind, `tool:${one.name}`] : [one.kind];
}

function isKind(one: AnyStep): (pattern: string) => boolean {
  return (pattern) => kindNames(one).some((name) => matchesWildcard(pattern, name));
}

function pathsOf(one: AnyStep, diffPaths: DiffPaths): string[] {
  return namedPaths(one, diffPaths).map(withoutWorkspacePrefix);
}

function namedPaths(one: AnyStep, diffPaths: DiffPaths): readonly string[] {
  switch (one.kind) {
    case "write":
    case "fetch":
    case "read":
    case "stat":
    case "list":
    case "remove":
    case "edit":
    case "grep":
      return [one.path];
    case "move":
      return [one.from, one.to];
    case "glob":
      return [one.base];
    case "tool":
      return one.prepared.paths;
    case "copy":
      return one.files.map(({ path }) => path);
    case "archive":
      return one.direction === "in" ? [one.path] : one.paths;
    case "patch":
      return diffPaths(one.diff);
    default:
      return [];
  }
}

function shortened(text: string): string {
  return text.length <= 80 ? text : `${text.slice(0, 79)}…`;
}
