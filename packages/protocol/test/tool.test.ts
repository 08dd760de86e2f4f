import { expect, test } from "vitest";
import {
  accessRule,
  approvalMs,
  jobPreview,
  jobRequest,
  problemsOf,
  refusalBy,
  type ToolDefinitionInput,
  toolArgumentsSchema,
  toolCommand,
  toolDefinition,
  toolName,
  toolRefusal,
} from "../src/index.ts";

const lint: ToolDefinitionInput = {
  description: "Lints",
  parameters: {
    path: { type: "path" },
    rule: { type: "string", characters: "A-Z0-9", required: false },
    only: { type: "strings", required: false },
    fix: { type: "boolean", required: false },
    depth: { type: "integer", minimum: 0, maximum: 9, required: false },
  },
  argv: [
    "ruff",
    "check",
    { param: "rule", flag: "--rule" },
    { param: "only", flag: "-o" },
    { param: "fix", flag: "--fix" },
    { param: "depth", flag: "--depth" },
    { param: "path" },
  ],
  timeoutMs: 5_000,
};

function made(definition: ToolDefinitionInput, args: Record<string, unknown>) {
  const checked = toolDefinition.parse(definition);
  return toolCommand(checked, toolArgumentsSchema(checked).parse(args));
}

function problems(definition: object): string[] {
  const parsed = toolDefinition.safeParse(definition);
  return parsed.success ? [] : problemsOf(parsed.error);
}

function argumentProblems(args: Record<string, unknown>): string[] {
  const parsed = toolArgumentsSchema(toolDefinition.parse(lint)).safeParse(args);
  return parsed.success ? [] : problemsOf(parsed.error);
}

test("an argument becomes whole words of the command, and an omitted argument omits its flag", () => {
  const { command, paths } = made(lint, { path: "src/a b", rule: "E501", only: ["x", "y; rm"], fix: true });
  expect(command).toEqual({
    argv: ["ruff", "check", "--rule", "E501", "-o", "x", "-o", "y; rm", "--fix", "/workspace/src/a b"],
    cwd: "",
    env: {},
    limits: { timeoutMs: 5_000 },
  });
  expect(paths).toEqual(["src/a b"]);
  expect(made(lint, { path: "", fix: false }).command.argv).toEqual(["ruff", "check", "/workspace"]);
});

test("stdin, working directory and environment can be parameters", () => {
  const definition: ToolDefinitionInput = {
    description: "d",
    parameters: { text: { type: "string" }, at: { type: "path", required: false } },
    argv: ["tr", "a-z", "A-Z"],
    stdin: { param: "text" },
    cwd: { param: "at" },
    env: { LANG: "C", TEXT: { param: "text" } },
  };
  expect(made(definition, { text: "hi", at: "sub" }).command).toMatchObject({
    ...{ stdin: "hi", cwd: "/workspace/sub", env: { LANG: "C", TEXT: "hi" } },
  });
  expect(made(definition, { text: "hi" }).command.cwd).toBe("");
});

test("arguments that do not fit are refused, each with its reason", () => {
  expect(argumentProblems({})).toEqual([expect.stringContaining("path")]);
  expect(argumentProblems({ path: "../etc" })).toEqual([expect.stringContaining('".." segment')]);
  expect(argumentProblems({ path: "/etc/passwd" })).toEqual([expect.stringContaining("absolute")]);
  expect(argumentProblems({ path: "a", rule: "-x" })).toHaveLength(2);
  expect(argumentProblems({ path: "a", rule: "é" })).toEqual([expect.stringContaining("other than A-Z0-9")]);
  expect(argumentProblems({ path: "a", only: ["ok", "--config=/x"] })).toEqual([
    expect.stringContaining("begins with -"),
  ]);
  expect(argumentProblems({ path: "a", only: ["a\0b"] })).toEqual([expect.stringContaining("NUL")]);
  expect(argumentProblems({ path: "a", depth: 10 })).toHaveLength(1);
  expect(argumentProblems({ path: "a", depth: "1" })).toHaveLength(1);
  expect(argumentProblems({ path: "a", other: 1 })).toHaveLength(1);
  expect(argumentProblems({ path: "a", fix: "yes" })).toHaveLength(1);
});

test("a definition in which a parameter would become code, a program or nothing is refused", () => {
  const of = (argv: unknown[], parameters: object = { p: { type: "string" } }) =>
    problems({ description: "d", parameters, argv });
  expect(of(["sh", "-c", { param: "p" }])).toEqual([expect.stringContaining("code for an interpreter")]);
  expect(of(["/bin/bash", "-ec", { param: "p" }])).toHaveLength(1);
  expect(of(["env", "A=1", "python3.12", "-c", { param: "p" }])).toHaveLength(1);
  expect(of(["bash", { param: "p", flag: "-c" }])).toHaveLength(1);
  expect(of(["node", "--eval", { param: "p" }])).toHaveLength(1);
  expect(of([{ param: "p" }])).toEqual([expect.stringContaining("the program is a text")]);
  expect(of(["", { param: "p" }])).toEqual([expect.stringContaining("no name")]);
  expect(of(["ls"])).toEqual([expect.stringContaining("nothing uses it")]);
  expect(of(["ls", { param: "q" }, { param: "p" }])).toEqual([expect.stringContaining("no parameter q")]);
  expect(of(["ls", { param: "p" }], { p: { type: "boolean" } })).toHaveLength(1);
  expect(of(["sh", "-c", 'grep -- "$1" log', "sh", { param: "p" }])).toEqual([]);
  expect(problems({ description: "d", argv: ["ls"], env: { LD_PRELOAD: "x" } })).toHaveLength(1);
  expect(problems({ description: "d", argv: ["ls"], cwd: "../up" })).toHaveLength(1);
  expect(problems({ description: "d", argv: ["ls"], parameters: { session: { type: "path" } } })).not.toEqual(
    [],
  );
});

test("a custom tool cannot have the name of one of Berth's own tools, nor a parameter the name of an inherited property", () => {
  for (const name of ["bash", "job", "sandbox", "Lint", "a b", "", "-x"])
    expect(toolName.safeParse(name).success).toBe(false);
  const { parameters } = toolDefinition.parse({ description: "d", argv: ["constructor"] });
  expect(toolArgumentsSchema({ parameters }).safeParse({ constructor: "x" }).success).toBe(false);
  expect(problems({ description: "d", argv: ["ls", { param: "constructor" }] })).toHaveLength(1);
});

test("a negative number, which begins as an option does, is an argument only where the tool's minimum is negative", () => {
  const of = (bounds: object) =>
    toolArgumentsSchema(
      toolDefinition.parse({
        ...{ description: "d", argv: ["head", { param: "count" }] },
        parameters: { count: { type: "integer", ...bounds } },
      }),
    );
  expect(of({}).safeParse({ count: -5 }).success).toBe(false);
  expect(of({ maximum: 9 }).safeParse({ count: -5 }).success).toBe(false);
  expect(of({}).safeParse({ count: 5 }).success).toBe(true);
  expect(of({ minimum: -9 }).safeParse({ count: -5 }).success).toBe(true);
});

test("rules apply to a tool's name, to the command that it runs and to the paths that it names", () => {
  const definition = toolDefinition.parse(lint);
  const prepare = () => toolCommand(definition, { path: "secret/a" });
  const call = jobRequest.parse({ kind: "tool", name: "lint", args: { path: "secret/a" } });
  const steps = jobRequest.parse({ kind: "steps", steps: [call] });
  const refusal = (rule: object, request = call) => refusalBy([accessRule.parse(rule)], request, { prepare });
  expect(refusal({ kinds: { deny: ["tool:lint"] } })).toContain("tool:lint");
  expect(refusal({ kinds: { deny: ["tool"] } })).toBeDefined();
  expect(refusal({ kinds: { deny: ["tool:*"] } }, steps)).toBeDefined();
  expect(refusal({ kinds: { allow: ["read", "tool:l*"] } })).toBeUndefined();
  expect(refusal({ kinds: { allow: ["exec"] } })).toBeDefined();
  expect(refusal({ commands: { deny: ["ruff check"] } })).toContain("ruff check");
  expect(refusal({ paths: { deny: ["secret/**"] } })).toContain("secret/a");
  expect(refusal({ kinds: { deny: ["exec"] } })).toBeUndefined();
  const asks = accessRule.parse({ approval: { kinds: ["tool:lint"], expiresMs: 5_000 } });
  expect(approvalMs([asks], call, prepare)).toBe(5_000);
  expect(jobPreview({ request: call }, { prepare })).toContain('runs: "ruff" "check" "/workspace/secret/a"');
});

test("a tool of another tenant or agent does not exist for a job, and one of another profile is refused with that reason", () => {
  const only = toolDefinition.parse({
    ...{ description: "d", argv: ["ls"], tenants: ["ac*"], agents: ["ci"], profile: "net" },
  });
  expect(toolRefusal(only, { tenant: "acme", agent: "ci", profile: "net" })).toBeUndefined();
  expect(toolRefusal(only, { tenant: "globex", agent: "ci", profile: "net" })).toBe("there is no such tool");
  expect(toolRefusal(only, { tenant: "acme", profile: "net" })).toBe("there is no such tool");
  expect(toolRefusal(only, { tenant: "acme", agent: "ci", profile: "default" })).toContain("net only");
});
