import { describe, expect, test } from "vitest";
import { z } from "zod";
import { job, problemsOf } from "../src/index.ts";

function problems(request: unknown, more: object = {}): string[] {
  const parsed = job.safeParse({ version: 1, id: "job-1", tenant: "acme", request, ...more });
  return parsed.success ? [] : problemsOf(parsed.error);
}

describe("what is wrong with a job", () => {
  test("is told of the kind that was meant, every problem by its place", () => {
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

  test("names the step it is in, and what belongs to the envelope", () => {
    const steps = [
      { kind: "read", path: "ok" },
      { kind: "edit", path: "f", find: "", replace: "" },
    ];
    expect(problems({ kind: "steps", steps }, { tenant: "ACME", id: "123" })).toEqual([
      expect.stringMatching(/^id: a job id is/),
      expect.stringMatching(/^tenant: a tenant id is/),
      expect.stringMatching(/^request\.steps\.1\.find: /),
    ]);
  });

  test("is told of the object that was given, where one or a list may be, and of the list", () => {
    const oneOrMany = z.union([job, z.array(job)]);
    const bad = { version: 1, id: "a", tenant: "Bad Name", request: { kind: "exec" } };
    const told = (value: unknown) =>
      problemsOf(oneOrMany.safeParse(value).error ?? { issues: [] }).join("\n");
    for (const part of ["tenant", "request.command"]) expect(told(bad)).toContain(part);
    for (const part of ["1.tenant", "1.request.command"])
      expect(told([{ ...bad, tenant: "ok", request: { kind: "stat", path: "" } }, bad])).toContain(part);
    expect(told({ ...bad, request: { kind: "nope" } })).toContain("request.kind");
  });

  test("is nothing when nothing is", () => {
    expect(problems({ kind: "list" })).toEqual([]);
  });
});
