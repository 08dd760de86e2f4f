import { describe, expect, test } from "vitest";
import { job, problemsOf } from "../src/index.ts";

function problems(request: unknown, more: object = {}): string[] {
  const parsed = job.safeParse({ version: 1, id: "job-1", tenant: "acme", request, ...more });
  return parsed.success ? [] : problemsOf(parsed.error);
}

describe("problems of a job", () => {
  test("an invalid job is refused with every problem of the kind that was meant, each with its place", () => {
    expect(problems({ kind: "write", path: "/etc/passwd", content: 7 })).toEqual([
      "request.path: invalid path: it is absolute; give a path relative to /workspace",
      "request.content: Invalid input: expected string, received number",
    ]);
    expect(problems({ kind: "exec", command: "a\0b", cwd: "../x" })).toEqual([
      "request.command: it has a NUL byte",
      'request.cwd: invalid path: it has a ".." segment',
    ]);
    expect(problems({ kind: "archive", direction: "in", content: "not base64!" })).toEqual([
      expect.stringMatching(/^request\.content: /),
    ]);
  });

  test("a problem of a job names the step it is in, and what belongs to the envelope", () => {
    const steps = [
      { kind: "read", path: "ok" },
      { kind: "edit", path: "f", find: "", replace: "" },
    ];
    expect(problems({ kind: "steps", steps }, { tenant: " ACME", id: "123" })).toEqual([
      expect.stringMatching(/^id: a job id is/),
      expect.stringMatching(/^tenant: a tenant.s name begins/),
      expect.stringMatching(/^request\.steps\.1\.find: /),
    ]);
  });

  test("a field that is missing is named as missing", () => {
    const parsed = job.safeParse({ version: 1, id: "job-1", tenant: "acme", command: "ls" });
    expect(problemsOf(parsed.error ?? { issues: [] })).toEqual([
      "request: it is missing",
      'Unrecognized key: "command"',
    ]);
    expect(problems({ kind: "write", content: "x" })).toEqual(["request.path: it is missing"]);
  });

  test("a field in snake_case is answered with its name", () => {
    const request = { kind: "exec", command: "ls" };
    const parsed = job.safeParse({ version: 1, id: "job-1", tenant: "acme", fork_of: "env", request });
    expect(problemsOf(parsed.error ?? { issues: [] })).toEqual([
      'Unrecognized key: "fork_of": did you mean forkOf?',
    ]);
  });

  test("an exec without a command and without argv, or with both, is asked to give one", () => {
    const one = ["request.command: give either command or argv, and not both"];
    expect(problems({ kind: "exec" })).toEqual(one);
    expect(problems({ kind: "exec", command: "ls", argv: ["ls"] })).toEqual(one);
  });

  test("an unknown kind is answered with the kinds that there are", () => {
    expect(problems({ kind: "exce", command: "ls" })).toEqual([
      'request.kind: there is no kind "exce"; the kinds are exec, code, write, read, stat, list, remove, move, edit, ' +
        "patch, grep, glob, copy, archive, fetch, tool, steps, destroy, stop, snapshot, restore",
    ]);
    expect(problems({ command: "ls" })).toEqual([
      expect.stringMatching(/^request\.kind: the kind is missing; the kinds are exec, /),
    ]);
    expect(problems({ kind: "steps", steps: [{ kind: "steps" }] })).toEqual([
      expect.stringMatching(
        /^request\.steps\.0\.kind: there is no kind "steps"; the kinds are exec, .*tool$/,
      ),
    ]);
    expect(problems({ kind: "archive" })).toEqual([expect.stringMatching(/^request\.direction: .*in.*out/)]);
  });

  test("a step of no kind has one problem, not one for each form that a step may have", () => {
    const steps = Array.from({ length: 1_000 }, () => ({}));
    const parsed = job.safeParse({ version: 1, id: "a", tenant: "acme", request: { kind: "steps", steps } });
    const issues = parsed.error?.issues ?? [];
    expect(issues).toHaveLength(1_000);
    expect(issues.flatMap((issue) => (issue.code === "invalid_union" ? issue.errors : []))).toEqual([]);
  });

  test("only the first hundred problems are reported, and none at the length of what was given", () => {
    const steps = Array.from({ length: 1_000 }, () => ({}));
    expect(problems({ kind: "steps", steps })).toHaveLength(100);
    const [reported = ""] = problems({ kind: "list", ["x".repeat(1_000_000)]: 1 });
    expect(reported).toMatch(/^request: /);
    expect(reported.length).toBeLessThan(1_000);
  });

  test("a valid job has no problems", () => {
    expect(problems({ kind: "list" })).toEqual([]);
  });
});
